"""Committing the named files, and nothing else, once."""

from __future__ import annotations

import pytest
from act_world import git, show

from cockpit.act.adapters import ADAPTERS
from cockpit.act.preview import ActionRefused
from cockpit.act.workspace import Workspace

pytestmark = pytest.mark.slow

COMMIT = ADAPTERS["git_commit"]


async def test_only_the_named_files_are_committed(ground: Workspace) -> None:
    root = ground.root
    (root / "app.py").write_text("def area(r):\n    return 3.14 * r * r\n")
    (root / "new file é.py").write_text("x = 1\n")
    (root / "staged.py").write_text("s = 1\n")
    (root / "docs/notes.md").unlink()
    git(root, "add", "staged.py")
    proposal = await show(
        ground,
        "git_commit",
        message="Use a better pi\n\n# not a comment\nWhy: rounding.",
        paths=["app.py", "new file é.py", "docs/notes.md", "app.py"],
    )
    assert proposal.title == "commit 3 files (+2 −4): Use a better pi"
    assert dict(proposal.fields)["docs/notes.md"] == "removed, +0 −3"
    assert dict(proposal.fields)["branch"] == "main"
    assert await COMMIT.probe(proposal.payload, "k-9", ground) == "not_done"
    outcome = await COMMIT.perform(proposal.payload, "k-9", ground)
    assert outcome.failure is None, outcome
    assert outcome.detail["commit"] == git(root, "rev-parse", "HEAD").strip()
    assert git(root, "show", "--format=", "--name-status", "-z", "HEAD").split("\0")[:-1] == [
        "M", "app.py", "D", "docs/notes.md", "A", "new file é.py",
    ]  # fmt: skip
    message = git(root, "log", "-1", "--format=%B")
    assert message.strip() == (
        "Use a better pi\n\n# not a comment\nWhy: rounding.\n\nCockpit-Key: k-9"
    )
    assert git(root, "status", "--porcelain").splitlines() == ["A  staged.py"]
    assert await COMMIT.probe(proposal.payload, "k-9", ground) == "done"
    assert await COMMIT.probe(proposal.payload, "k-99", ground) == "not_done"


async def test_a_partly_staged_file_is_committed_as_shown(ground: Workspace) -> None:
    root = ground.root
    (root / "app.py").write_text("staged\n")
    git(root, "add", "app.py")
    (root / "app.py").write_text("working\n")
    proposal = await show(ground, "git_commit", message="m", paths=["app.py"])
    assert proposal.diffs[0].after == "working\n"
    await COMMIT.perform(proposal.payload, "k", ground)
    assert git(root, "show", "HEAD:app.py") == "working\n"


async def test_a_failing_hook_leaves_everything_as_it_was(ground: Workspace) -> None:
    root = ground.root
    hook = root / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho 'lint says no' >&2\nexit 1\n")
    hook.chmod(0o755)
    (root / "new.py").write_text("x = 1\n")
    before = git(root, "rev-parse", "HEAD")
    proposal = await show(ground, "git_commit", message="m", paths=["new.py"])
    assert [note for note in proposal.notes if note.startswith("The repository's hooks run ")]
    assert dict(proposal.fields)["hooks"].startswith("pre-commit ")
    outcome = await COMMIT.perform(proposal.payload, "k", ground)
    assert (outcome.failure, "lint says no" in outcome.summary) == ("permanent", True)
    assert git(root, "rev-parse", "HEAD") == before
    assert git(root, "status", "--porcelain") == "?? new.py\n"
    assert await COMMIT.probe(proposal.payload, "k", ground) == "not_done"


async def test_a_change_after_showing_is_a_conflict(ground: Workspace) -> None:
    root = ground.root
    (root / "app.py").write_text("one\n")
    proposal = await show(ground, "git_commit", message="m", paths=["app.py"])
    (root / "app.py").write_text("two\n")
    assert (await COMMIT.perform(proposal.payload, "k", ground)).failure == "conflict"
    (root / "app.py").write_text("one\n")
    git(root, "switch", "-qc", "other")
    outcome = await COMMIT.perform(proposal.payload, "k", ground)
    assert outcome.failure == "conflict" and "branch is other" in outcome.summary
    git(root, "switch", "-q", "main")
    assert (await COMMIT.perform(proposal.payload, "k", ground)).failure is None


async def test_a_held_lock_is_transient_and_unknown(ground: Workspace) -> None:
    root = ground.root
    (root / "app.py").write_text("one\n")
    proposal = await show(ground, "git_commit", message="m", paths=["app.py"])
    (root / ".git/index.lock").write_text("")
    assert (await COMMIT.perform(proposal.payload, "k", ground)).failure == "transient"
    assert await COMMIT.probe(proposal.payload, "k", ground) == "unknown"
    (root / ".git/index.lock").unlink()
    assert (await COMMIT.perform(proposal.payload, "k", ground)).failure is None


async def test_signing_is_never_asked_for(ground: Workspace) -> None:
    root = ground.root
    git(root, "config", "commit.gpgSign", "true")
    git(root, "config", "gpg.program", "/bin/false")
    (root / "app.py").write_text("one\n")
    proposal = await show(ground, "git_commit", message="m", paths=["app.py"])
    assert any("This one is not signed" in note for note in proposal.notes)
    assert (await COMMIT.perform(proposal.payload, "k", ground)).failure is None


async def test_the_first_commit_of_a_repository(ground: Workspace) -> None:
    root = ground.root
    git(root, "switch", "-q", "--orphan", "fresh")
    (root / "a.py").write_text("x\n")
    proposal = await show(ground, "git_commit", message="First", paths=["a.py"])
    assert await COMMIT.probe(proposal.payload, "k", ground) == "not_done"
    assert (await COMMIT.perform(proposal.payload, "k", ground)).failure is None
    assert await COMMIT.probe(proposal.payload, "k", ground) == "done"


@pytest.mark.parametrize("path", ["-A", ":/", "*.py", ":(top)app.py"])
async def test_names_are_names_and_never_options_or_patterns(ground: Workspace, path: str) -> None:
    root = ground.root
    (root / "app.py").write_text("changed\n")
    with pytest.raises(ActionRefused, match="no such file"):
        await show(ground, "git_commit", message="m", paths=[path])
    target = root / path
    if "/" not in path:
        target.write_text("x\n")
        proposal = await show(ground, "git_commit", message="--amend", paths=[path])
        assert (await COMMIT.perform(proposal.payload, "k", ground)).failure is None
        assert git(root, "status", "--porcelain") == " M app.py\n"
        assert git(root, "log", "--oneline", "--format=%s").splitlines() == ["--amend", "Begin"]


async def test_commits_of_nothing_are_refused(ground: Workspace) -> None:
    for path, words in (("app.py", "has not changed"), ("docs", "is a directory")):
        with pytest.raises(ActionRefused, match=words):
            await show(ground, "git_commit", message="m", paths=[path])


@pytest.mark.parametrize("message", ["a\0b", "é" * 32_769])
async def test_a_message_that_no_program_can_be_given_is_refused(ground, message):
    (ground.root / "app.py").write_text("one\n")
    with pytest.raises(ActionRefused, match="longer than 64 KiB or contains a NUL"):
        await show(ground, "git_commit", message=message, paths=["app.py"])


@pytest.mark.parametrize(
    ("message", "whole"),
    [
        ("é" * 32_768, None),
        ("Subject", "Subject\n\nCockpit-Key: k\n"),
        ("  Fix: it\n", "Fix: it\n\nCockpit-Key: k\n"),
        ("S\n\nWhy.\n\nRefs: #3\nSigned-off-by: A <a@b>", None),
    ],
)
async def test_the_key_is_a_trailer_git_itself_reads(ground, message, whole):
    root = ground.root
    (root / "app.py").write_text("one\n")
    proposal = await show(ground, "git_commit", message=message, paths=["app.py"])
    assert (await COMMIT.perform(proposal.payload, "k", ground)).failure is None
    read = git(root, "log", "-1", "--format=%(trailers:key=Cockpit-Key,valueonly)").strip()
    assert read == "k"
    assert whole is None or git(root, "log", "-1", "--format=%B") == whole + "\n"


async def test_without_an_identity_it_says_what_to_set(ground: Workspace) -> None:
    git(ground.root, "config", "user.useConfigOnly", "true")
    git(ground.root, "config", "--unset", "user.email")
    (ground.root / "app.py").write_text("one\n")
    proposal = await show(ground, "git_commit", message="m", paths=["app.py"])
    outcome = await COMMIT.perform(proposal.payload, "k", ground)
    assert outcome.failure == "permanent" and "`git config user.email" in outcome.summary
