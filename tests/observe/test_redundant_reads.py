"""Redundant reads: refused where the packet has the text, served from the store where it was dropped."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from observe_loop import PATIENCE_S, Wave, ask, looked, runtime_on, scenario, seen
from observe_world import Project

from cockpit.access.confined_paths import Confined
from cockpit.chains.report.guard_savings import measure_guards
from cockpit.core.project import disk_marks
from cockpit.observe import project_files
from cockpit.observe.freshness.content_marks import ContentMarks
from cockpit.observe.project_snapshot import ProjectSnapshot
from cockpit.observe.scope_items import parse_item

pytestmark = pytest.mark.slow

LONG = "".join(
    f"def reading_{n}(station):\n    return measured(station, {n}) * {n * 7919 % 1013}\n\n\n"
    for n in range(120)
)


def refusals(wave: Wave) -> dict[str, Any]:
    """What the guard refused in a wave."""
    return wave.journal.get("context.refused", {})


SAME = [
    (["search:helper in src/**"], ["search:helper in src/**"]),
    (["search:helper"], ["search:helper in src/**"]),
    (["tree:."], ["tree:src"]),
    (["symbol:helper"], ["symbol:helper"]),
    (["diff:HEAD~1..HEAD"], ["diff:HEAD~1..HEAD in src/**"]),
    (["log:HEAD"], ["log:HEAD"]),
    (["file:src/app.py"], ["file:src/app.py:3-400"]),
    (["file:src/app.py:1-9", "file:src/app.py:8-400"], ["file:src/app.py"]),
    (["file:src/*.py"], ["file:src/app.py", "file:src/use.py:2-3"]),
    (["file:src/*.py"], ["file:src/*.py"]),
    (["file:src/app.py", "file:src/use.py"], ["search:helper in src/*.py"]),
    (["file:src/app.py @outline"], ["file:src/app.py @outline"]),
    (["docs:load"], ["docs:load"]),
]
OTHER = [
    (["search:helper in src/**"], ["search:helper"]),
    (["search:helper"], ["search:load"]),
    (["tree:src"], ["tree:."]),
    (["diff:HEAD~1..HEAD"], ["diff:HEAD~1"]),
    (["log:HEAD"], ["log:HEAD @outline"]),
    (["file:src/app.py:1-9"], ["file:src/app.py:9-10"]),
    (["file:src/app.py"], ["file:src/app.py", "file:src/use.py"]),
    (["file:src/app.py"], ["search:helper"]),
    (["file:src/app.py"], ["symbol:helper"]),
]


@pytest.mark.parametrize(("first", "again"), SAME, ids=lambda scope: " ".join(scope))
async def test_what_the_packet_has_is_not_read_again(
    project: Project, tmp_path: Path, first: Sequence[str], again: Sequence[str]
) -> None:
    _, second, third = await looked(project.root, scenario(tmp_path, first, again))
    refused = refusals(second)
    assert refused, third.told()
    assert (refused["guard"], refused["tokens"] > 0) == ("redundant_read", True)
    assert "in your context already (" in refused["message"]
    assert "Work from what you have" in third.told()
    assert "context.requested" not in second.journal
    assert third.jobs == []


@pytest.mark.parametrize(("first", "again"), OTHER, ids=lambda scope: " ".join(scope))
async def test_what_the_packet_has_in_part_is_read(
    project: Project, tmp_path: Path, first: Sequence[str], again: Sequence[str]
) -> None:
    _, second, third = await looked(project.root, scenario(tmp_path, first, again))
    assert not refusals(second)
    assert [row.status for row in third.jobs][:1] == ["done"]


async def test_a_part_of_a_request_that_is_there_is_said_and_the_rest_is_read(
    project: Project, tmp_path: Path
) -> None:
    model = scenario(tmp_path, ["file:src/app.py"], ["file:src/app.py", "file:README.md"])
    _, second, third = await looked(project.root, model)
    items = {item["item"]: item for item in second.journal["context.requested"]["items"]}
    assert "in your context already" in items["file:src/app.py"]["refused"]
    assert [row.item for row in third.jobs] == ["file:README.md"]
    assert "file:src/app.py: cannot be read: it is in your context already" in third.told()


CHANGES: dict[str, Callable[[Project], object]] = {
    "edited": lambda project: project.write("src/app.py", "def helper():\n    return 2\n"),
    "same size and time": lambda project: _swap_bytes(project.root / "src/app.py"),
    "renamed": lambda project: (project.root / "src/app.py").rename(project.root / "src/old.py"),
    "a link to another file": lambda project: _link(project.root / "src/app.py"),
    "line ends": lambda project: _to_crlf(project.root / "src/app.py"),
    "a file more": lambda project: project.write("src/new.py", "helper = 1\n"),
    "ignored by git": lambda project: project.write(".gitignore", "src/use.py\n"),
}


def _swap_bytes(path: Path) -> None:
    """Change a file in place, so that neither its size nor its time of change tells."""
    before = path.stat()
    path.write_text(path.read_text().replace("helper", "HELPER"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def _link(path: Path) -> None:
    path.unlink()
    path.symlink_to("use.py")


def _to_crlf(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))


@pytest.mark.parametrize("change", CHANGES)
async def test_what_anybody_changed_is_read_again(
    project: Project, tmp_path: Path, change: str
) -> None:
    """In the middle of a session, by another program than cockpit."""
    seen_by_change = {
        "a file more": "search:helper in src/**",
        "ignored by git": "tree:src",
    }
    item = seen_by_change.get(change, "file:src/app.py")
    if change == "ignored by git":
        project.git("rm", "-q", "--cached", "src/use.py")
    model = scenario(tmp_path, [item], [item])
    async with runtime_on(project.root) as runtime:
        sid = await runtime.start("look at it", model=model, policy="reads", interactive=False)
        done: list[bool] = []

        def alter() -> None:
            row = runtime.store.read_now(
                lambda c: c.execute(
                    "SELECT 1 FROM journal WHERE action='orientation.packet.compiled'"
                    " AND wave_id LIKE '%-w2'"
                ).fetchone()
            )
            if row and not done:
                done.append(True)
                CHANGES[change](project)

        runtime.store.on_commit(alter)
        await asyncio.wait_for(runtime.run(sid), PATIENCE_S)
        _, second, third = seen(runtime.store, sid)
    assert done
    assert "guard" not in refusals(second), refusals(second)
    assert [row.item for row in third.jobs] == ([] if change == "renamed" else [item])


CROWD = [
    *(f"file:other/o{number:02}.py" for number in range(12)),
    *("search:return", "search:def", "search:reading|other", "symbol:station", "diff:HEAD~1..HEAD"),
]


async def _drop(
    project: Project, tmp_path: Path, again: str, *, before: Callable[[], None]
) -> tuple[Wave, Wave]:
    """A session whose third packet has no room for ``again``, which it then asks for once more."""
    model = scenario(tmp_path, [again], CROWD, [again])
    async with runtime_on(project.root, token_budget=14_000) as runtime:
        sid = await runtime.start("look at it", model=model, policy="reads", interactive=False)
        asked: list[bool] = []

        def watch() -> None:
            row = runtime.store.read_now(
                lambda c: c.execute(
                    "SELECT 1 FROM journal WHERE action='orientation.packet.compiled'"
                    " AND wave_id LIKE '%-w3'"
                ).fetchone()
            )
            if row and not asked:
                asked.append(True)
                before()

        runtime.store.on_commit(watch)
        await asyncio.wait_for(runtime.run(sid), PATIENCE_S)
        _, _, second, third = seen(runtime.store, sid)
        assert asked
        return second, third


@pytest.fixture
def crowded(project: Project) -> Project:
    """A project with more text than a packet has room for, of which nothing changed just now."""
    project.write("long.py", LONG)
    for number in range(12):
        project.write(f"other/o{number:02}.py", LONG.replace("reading", f"other_{number}"))
    project.commit("long files")
    # What was written a moment ago has no mark: on an idle machine that is the time of a whole wave.
    while not disk_marks.mark_folder(str(project.root)):
        time.sleep(0.01)
    return project


@pytest.mark.parametrize(
    "again",
    [
        "file:long.py",
        "search:station",
        "symbol:measured",
        "diff:HEAD~1..HEAD in long.py",
    ],
)
async def test_what_was_dropped_is_served_from_the_store_and_nothing_is_touched(
    crowded: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again: str
) -> None:
    """Reading a file or starting a program is forbidden from the moment that the packet lacks the text."""

    def forbid() -> None:
        def refuse(*args: object, **_: object) -> Any:
            raise AssertionError(f"touched: {args!r}")

        monkeypatch.setattr(Confined, "open_read", refuse)
        monkeypatch.setattr(asyncio, "create_subprocess_exec", refuse)
        monkeypatch.setattr(subprocess, "Popen", refuse)
        monkeypatch.setattr(project_files, "read_contents", refuse)

    second, third = await _drop(crowded, tmp_path, again, before=forbid)
    lost = again not in second.held or second.held[again].level != "full"
    if not lost:
        pytest.fail("the test needs a packet that has no room for it")
    asked = second.journal["context.requested"]
    assert (asked["auto"], asked["stored"], asked["proposal_id"]) == (True, 1, "")
    assert third.journal["context.fetched"]["new"] == 1
    assert third.held[again].level == "full"
    assert "nothing has changed" in third.told() or "exchange:3.1" not in third.held


async def test_what_was_dropped_and_then_changed_is_asked_for_again(
    crowded: Project, tmp_path: Path
) -> None:
    def change() -> None:
        crowded.write("long.py", LONG.replace("measured", "counted_"))

    second, third = await _drop(crowded, tmp_path, "file:long.py", before=change)
    assert second.journal["context.requested"]["auto"] is False
    assert "counted_" in third.words["file:long.py"]


RESUMED = """
import asyncio, sys
from observe_loop import runtime_on
from pathlib import Path

async def main(root, session_id):
    async with runtime_on(Path(root)) as runtime:
        await runtime.say(session_id, "go on")
        await runtime.run(session_id)

asyncio.run(main(*sys.argv[1:]))
"""


async def test_another_process_refuses_the_same_read(project: Project, tmp_path: Path) -> None:
    """The state is in the store: a session that another process resumes has it."""
    path = tmp_path / "looks.toml"
    finish = ask((), wave=2, finish=True)
    again = ask(["file:src/app.py", "search:helper"], wave=3)
    first = ask(["file:src/app.py", "search:helper"], wave=1)
    path.write_text("".join([first, finish, again, ask((), wave=4, finish=True)]))
    async with runtime_on(project.root) as runtime:
        sid = await runtime.start(
            "look at it", model=f"script:{path}", policy="reads", interactive=False
        )
        await asyncio.wait_for(runtime.run(sid), PATIENCE_S)
    ran = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", RESUMED, str(project.root), sid],
        cwd=Path(__file__).parent,  # of observe_loop
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert ran.returncode == 0, ran.stderr
    async with runtime_on(project.root) as runtime:
        third = seen(runtime.store, sid)[2]
        savings = runtime.store.read_now(lambda c: measure_guards(c, "", "9999"))
        assert (savings.built_in, savings.built_in_tokens) == (1, refusals(third)["tokens"])
    assert refusals(third)["guard"] == "redundant_read", third.journal.keys()
    assert json.dumps(third.journal).count("in your context already") == 2


def test_a_mark_is_unknown_where_a_change_could_go_unseen(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    ground = ProjectSnapshot.at(project.root)
    path = project.root / "src/app.py"
    now = path.stat()
    os.utime(path, ns=(now.st_atime_ns, now.st_mtime_ns + 3_600 * 10**9))
    assert ContentMarks(ground).mark(parse_item("file:src/app.py")) == ""
    assert ContentMarks(ground).mark(parse_item("search:x")) == ""
    assert ContentMarks(ground).mark(parse_item("file:src")) == ""
    assert ContentMarks(ground).mark(parse_item("file:gone.py")) == ""
    assert ContentMarks(ground).mark(parse_item("pr:1")) == ""
    monkeypatch.setattr(disk_marks, "RACY_NS", 0)
    os.utime(path, ns=(now.st_atime_ns, now.st_mtime_ns))
    project.write("node_modules/x/y.js", "1\n").write(".venv/z.py", "1\n")
    project.write(".gitignore", "/node_modules/\n.venv\n")
    before = ContentMarks(ground).mark(parse_item("search:x"))
    project.write("node_modules/x/y.js", "22\n").write(".venv/z.py", "22\n")
    assert ContentMarks(ground).mark(parse_item("search:x")) == before != ""
    project.write(".gitignore", "/node_modules/\n.venv\n!.venv/z.py\n")
    whole = ContentMarks(ground).mark(parse_item("search:x"))
    project.write(".venv/z.py", "333\n")
    assert ContentMarks(ground).mark(parse_item("search:x")) not in (whole, before)
    assert ContentMarks(ground).mark(parse_item("file:src/use.py")) != ""
