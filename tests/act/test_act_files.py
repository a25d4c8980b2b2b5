"""Writing files: shown before, whole and durable, never over what somebody else changed."""

from __future__ import annotations

import fcntl
import hashlib
import os
import threading
from pathlib import Path

import pytest
from act_world import show

from cockpit.access.confined_paths import Confined, PathRefused
from cockpit.act.adapters import ADAPTERS
from cockpit.act.adapters.write_files import put_file
from cockpit.act.preview import ActionRefused
from cockpit.act.workspace import Workspace
from cockpit.core.canonical_json import canonical_json

WRITE = ADAPTERS["write_file"]
PATIENCE_S = 30.0


async def test_a_new_file_is_shown_made_and_probed(ground: Workspace) -> None:
    proposal = await show(ground, "write_file", path="new/deep/a.py", content="x = 1\n")
    assert proposal.title == "create new/deep/a.py (+1 −0)"
    assert proposal.notes == ("The directory new/deep is made.",)
    assert (proposal.diffs[0].before, proposal.diffs[0].after) == (None, "x = 1\n")
    body = proposal.proposal_body()
    assert set(body) == {"type", "summary", "fields", "body", "diffs", "notes", "payload"}
    assert canonical_json(body)
    assert await WRITE.probe(proposal.payload, "k", ground) == "not_done"
    outcome = await WRITE.perform(proposal.payload, "k", ground)
    assert (outcome.status, outcome.summary) == ("success", "new/deep/a.py is written, 6 bytes.")
    assert (ground.root / "new/deep/a.py").read_text() == "x = 1\n"
    assert [p.name for p in (ground.root / "new/deep").iterdir()] == ["a.py"]
    assert await WRITE.probe(proposal.payload, "k", ground) == "done"
    assert (await WRITE.perform(proposal.payload, "k", ground)).status == "success"


async def test_the_mode_of_a_file_is_kept(ground: Workspace) -> None:
    script = ground.root / "run.sh"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o751)
    proposal = await show(ground, "write_file", path="run.sh", content="#!/bin/sh\ntrue\n")
    await WRITE.perform(proposal.payload, "k", ground)
    assert script.stat().st_mode & 0o7777 == 0o751


async def test_a_change_on_disk_in_between_is_a_conflict(ground: Workspace) -> None:
    proposal = await show(ground, "edit_file", path="app.py", old="3 *", new="3.14159 *")
    theirs = "def area(r):\n    return 3 * r ** 2\n"
    (ground.root / "app.py").write_text(theirs)
    outcome = await ADAPTERS["edit_file"].perform(proposal.payload, "k", ground)
    assert (outcome.status, outcome.failure) == ("failure", "conflict")
    assert "changed on disk since it was shown" in outcome.summary
    assert (ground.root / "app.py").read_text() == theirs
    assert await WRITE.probe(proposal.payload, "k", ground) == "unknown"


async def test_a_new_file_that_appeared_meanwhile_is_not_replaced(ground: Workspace) -> None:
    proposal = await show(ground, "write_file", path="a.py", content="mine\n")
    (ground.root / "a.py").write_text("theirs\n")
    assert (await WRITE.perform(proposal.payload, "k", ground)).failure == "conflict"
    assert (ground.root / "a.py").read_text() == "theirs\n"


@pytest.mark.parametrize("is_new", [True, False])
@pytest.mark.parametrize("theirs", ["mine\n", "theirs\n"])
async def test_a_writer_that_was_overtaken_at_the_last_moment(ground, monkeypatch, theirs, is_new):
    """Two sessions write one file at once: the second has written where both wrote the same."""
    file = ground.root / ("new.md" if is_new else "app.py")
    proposal = await show(ground, "write_file", path=file.name, content="mine\n")
    plain = os.fsync
    synced = []

    def overtake(descriptor: int) -> None:
        if not synced:
            file.write_text(theirs)
        synced.append(descriptor)
        plain(descriptor)

    monkeypatch.setattr(os, "fsync", overtake)
    outcome = await WRITE.perform(proposal.payload, "k", ground)
    assert file.read_text() == theirs
    if theirs == "mine\n":
        assert (outcome.status, outcome.summary) == ("success", f"{file.name} is written, 5 bytes.")
    else:
        assert outcome.failure == "conflict" and "Look at it again" in outcome.summary
        assert outcome.detail["found"] == hashlib.sha256(theirs.encode()).hexdigest()
    assert [p.name for p in ground.root.iterdir() if p.name.endswith(".cockpit")] == []


def test_who_replaces_a_file_waits_for_its_turn(tmp_path: Path) -> None:
    file, results = tmp_path / "app.py", []
    file.write_text("old\n")
    before, turn = hashlib.sha256(b"old\n").hexdigest(), os.open(tmp_path, os.O_RDONLY)
    words = (Confined(tmp_path), "app.py", b"new\n", "key", before)
    second = threading.Thread(target=lambda: results.append(put_file(*words)))
    fcntl.flock(turn, fcntl.LOCK_EX)
    second.start()
    second.join(0.05)
    assert second.is_alive() and file.read_text() == "old\n"
    os.close(turn)
    second.join()
    assert results == [True] and file.read_text() == "new\n"


@pytest.mark.parametrize("name", ["app.py", "docs/notes.md"])
async def test_a_link_swapped_in_is_never_followed(ground, tmp_path, name):
    outside = tmp_path / "outside"
    (outside / "docs").mkdir(parents=True)
    now = (ground.root / name).read_text()
    (outside / name).write_text(now)
    proposal = await show(ground, "write_file", path=name, content="changed\n")
    if name == "app.py":
        (ground.root / name).unlink()
        (ground.root / name).symlink_to(outside / name)
    else:
        (ground.root / "docs").rename(ground.root / "docs-old")
        (ground.root / "docs").symlink_to(outside / "docs")
    with pytest.raises(PathRefused):
        await WRITE.perform(proposal.payload, "k", ground)
    assert (outside / name).read_text() == now
    assert await WRITE.probe(proposal.payload, "k", ground) == "unknown"


@pytest.mark.parametrize(
    ("path", "content", "words"),
    [
        ("a.py", "x\0", "NUL"),
        ("a.py", "é" * (1024 * 1024 + 1), "larger than"),
        ("a.py", "key = '[masked:jwt]'\n", "would replace the secret itself"),
        ("a.py", "TOKEN = 'ghp_" + "a1B2" * 9 + "'\n", "looks like a key"),
    ],
)
async def test_writes_that_cannot_be_right_are_refused(ground, path, content, words):
    with pytest.raises((ActionRefused, PathRefused)) as caught:
        await show(ground, "write_file", path=path, content=content)
    assert words in str(caught.value)


async def test_writing_what_is_there_already_changes_nothing_and_reads_the_same(ground):
    told = []
    for note in ("", "has exactly this content already"):
        proposal = await show(ground, "write_file", path="notes.md", content="words\n")
        assert any(note in line for line in proposal.notes) or not note
        outcome = await ADAPTERS["write_file"].perform(proposal.payload, "k", ground)
        told.append((outcome.status, outcome.summary, outcome.detail))
    assert told[0] == told[1]
    assert (ground.root / "notes.md").read_text() == "words\n"


async def test_new_prose_may_speak_of_a_masked_secret(ground: Workspace) -> None:
    words = "`conf.py` holds a key: `TOKEN = [masked:github-token]`\n"
    assert (
        await show(ground, "write_file", path=".cockpit/reviews/a.md", content=words)
    ).risk == "low"
    (ground.root / "there.md").write_text("TOKEN = words\n")
    with pytest.raises(ActionRefused):
        await show(ground, "write_file", path="there.md", content=words)


async def test_secrets_beside_an_edit_are_not_drawn_but_stay_in_the_file(ground: Workspace) -> None:
    secret = "ghp_" + "a1B2" * 9
    (ground.root / "conf.py").write_text(f"TOKEN = '{secret}'\nDEBUG = True\n")
    proposal = await show(
        ground, "edit_file", path="conf.py", old="DEBUG = True", new="DEBUG = False"
    )
    assert secret not in canonical_json(proposal.proposal_body())
    await ADAPTERS["edit_file"].perform(proposal.payload, "k", ground)
    assert (ground.root / "conf.py").read_text() == f"TOKEN = '{secret}'\nDEBUG = False\n"


async def test_a_leftover_of_a_crash_goes_when_the_write_turns_out_to_be_done(ground):
    shown = await show(ground, "write_file", path="new.py", content="x = 1\n")
    assert (await WRITE.perform(shown.payload, "k", ground)).failure is None
    # Where it was killed between the file's new name and the end of its old one.
    leftover = ground.root / f".{hashlib.sha256(b'k').hexdigest()[:16]}.cockpit"
    leftover.write_text("x = 1\n")
    assert await WRITE.probe(shown.payload, "k", ground) == "done"
    assert not leftover.exists()


@pytest.mark.parametrize(
    ("path", "risk"),
    [
        ("a.py", "medium"), ("docs/x.md", "low"), ("Makefile", "high"),
        (".github/workflows/ci.yml", "high"),
        (".env.local", "high"), (".cockpit/config.toml", "high"),
    ],
)  # fmt: skip
async def test_the_risk_of_a_file_is_what_it_steers(ground, path, risk):
    assert (await show(ground, "write_file", path=path, content="x\n")).risk == risk
