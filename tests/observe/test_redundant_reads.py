"""Redundant reads: refused where the packet has the text, served from the store where it was dropped."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from observe_loop import LONG, PATIENCE_S, Wave, ask, looked, runtime_on, scenario, seen
from observe_world import Project

from cockpit.chains.report.guard_overview import read_guards

pytestmark = pytest.mark.slow


def refusals(wave: Wave) -> dict[str, Any]:
    """What the guard refused in a wave."""
    return wave.journal.get("context.refused", {})


HAD = {
    "search:helper": "search:helper",
    "tree:.": "tree:.",
    "symbol:helper": "symbol:helper",
    "diff:HEAD~1..HEAD": "diff:HEAD~1..HEAD",
    "log:HEAD": "log:HEAD",
    "file:src/app.py:1-9": "file:src/app.py",
    "file:src/app.py:8-400": "file:src/app.py:3-400",
    "file:src/u*.py": "file:src/use.py:2-3",
    "file:README.md @outline": "file:README.md @outline",
    "docs:load": "docs:load",
}
"""What the packet has, and what is then asked for and is part of it."""


async def test_what_the_packet_has_is_not_read_again(project: Project, tmp_path: Path) -> None:
    _, second, third = await looked(project.root, scenario(tmp_path, list(HAD), [*HAD.values()]))
    refused = refusals(second)
    assert refused, third.told()
    assert refused["guard"] == "redundant_read"
    assert "in your context already (" in refused["message"]
    assert "Work from what you have" in third.told()
    assert "context.requested" not in second.journal
    assert third.jobs == []


async def test_what_the_packet_has_in_part_or_by_reference_is_read_and_the_rest_is_not(
    project: Project, tmp_path: Path
) -> None:
    project.write("deploy.env", "TOKEN_A=aaa\nTOKEN_B=bbb\n").commit("an environment")
    known = ["search:helper in src/**", "tree:src", "diff:HEAD~1..HEAD", "log:HEAD",
             "file:src/app.py:1-9", "file:src/use.py @outline", "file:deploy.env",
             "file:README.md"]  # fmt: skip
    again = ["search:helper", "search:load", "tree:.", "diff:HEAD~1", "log:HEAD @outline",
             "symbol:helper", "file:src/app.py:9-10", "file:src/use.py", "file:deploy.env:1-2",
             "file:README.md:2-3"]  # fmt: skip
    _, second, third = await looked(project.root, scenario(tmp_path, known, again))
    items = {item["item"]: item for item in second.journal["context.requested"]["items"]}
    assert "in your context already" in items["file:README.md:2-3"]["refused"]
    assert {row.item: row.status for row in third.jobs} == dict.fromkeys(again[:-1], "done")
    assert "file:README.md:2-3: cannot be read: it is in your context already" in third.told()


def alter(project: Project) -> None:
    """Change the project as other programs than cockpit do, each file in another way."""
    project.write("src/edited.py", "def helper():\n    return 2\n")
    # Neither its size nor its time of change tells of this one.
    before = (project.root / "src/swapped.py").stat()
    project.write("src/swapped.py", "def HELPER(): ...\n")
    os.utime(project.root / "src/swapped.py", ns=(before.st_atime_ns, before.st_mtime_ns))
    (project.root / "src/renamed.py").rename(project.root / "src/old.py")
    (project.root / "src/link.py").unlink()
    (project.root / "src/link.py").symlink_to("use.py")
    project.write("src/ends.py", "def helper(): ...\r\n")
    project.write("src/new.py", "helper = 1\n")
    project.write(".gitignore", "src/ignored.py\n")


async def test_what_anybody_changed_is_read_again(project: Project, tmp_path: Path) -> None:
    """In the middle of a session, by another program than cockpit."""
    names = [f"src/{name}.py" for name in ("edited", "swapped", "renamed", "link", "ends")]
    for name in (*names, "src/ignored.py"):
        project.write(name, "def helper(): ...\n")
    items = ["search:helper in src/**", "tree:src", *(f"file:{name}" for name in names)]
    model = scenario(tmp_path, items, items)
    waves = await looked_with(project, model, "w2", lambda: alter(project))
    assert "guard" not in refusals(waves[1]), refusals(waves[1])
    assert sorted(row.item for row in waves[2].jobs) == sorted(
        item for item in items if item != "file:src/renamed.py"
    )


async def looked_with(
    project: Project, model: str, wave: str, act: Callable[[], None], **fields: Any
) -> list[Wave]:
    """The waves of a session during which ``act`` is called, once the packet of ``wave`` is compiled."""
    sql = f"SELECT 1 FROM journal WHERE action='orientation.packet.compiled' AND wave_id LIKE '%-{wave}'"
    async with runtime_on(project.root, **fields) as runtime:
        sid = await runtime.start("look into it", model=model, policy="reads", interactive=False)
        acted: list[bool] = []

        def watch() -> None:
            if not acted and runtime.store.read_now(lambda c: c.execute(sql).fetchone()):
                acted.append(True)
                act()

        runtime.store.on_commit(watch)
        await asyncio.wait_for(runtime.run(sid), PATIENCE_S)
        assert acted
        return seen(runtime.store, sid)


CROWD = [
    *(f"file:other/o{number:02}.py" for number in range(12)),
    *("search:return", "search:def", "search:reading|other", "symbol:station", "diff:HEAD~1..HEAD"),
]


async def _drop(
    project: Project, tmp_path: Path, again: str, *, before: Callable[[], None]
) -> tuple[Wave, Wave]:
    """A session whose third packet has no room for ``again``, which it then asks for once more."""
    model = scenario(tmp_path, [again], CROWD, [again])
    _, _, second, third = await looked_with(project, model, "w3", before, token_budget=14_000)
    return second, third


@pytest.fixture
def crowded(project: Project) -> Project:
    """A project with more text than a packet has room for."""
    project.write("long.py", LONG)
    for number in range(12):
        project.write(f"other/o{number:02}.py", LONG.replace("reading", f"other_{number}"))
    project.commit("long files")
    return project


async def test_what_was_dropped_is_served_again_without_a_proposal(crowded, tmp_path):
    again = "search:station"
    second, third = await _drop(crowded, tmp_path, again, before=lambda: None)
    lost = again not in second.held or second.held[again].level != "full"
    assert lost, "the test needs a packet that has no room for it"
    asked = second.journal["context.requested"]
    assert (asked["auto"], asked["stored"], asked["proposal_id"]) == (True, 1, "")
    assert third.journal["context.fetched"]["new"] == 1
    assert third.held[again].level == "full"
    assert "nothing has changed" in third.told() or "exchange:3.1" not in third.held


async def test_what_was_dropped_and_then_changed_is_asked_for_again(crowded, tmp_path):
    def change() -> None:
        crowded.write("long.py", LONG.replace("measured", "counted_"))

    second, third = await _drop(crowded, tmp_path, "file:long.py", before=change)
    assert second.journal["context.requested"]["auto"] is False
    assert "counted_" in third.words["file:long.py"]


async def test_a_session_that_is_resumed_refuses_the_same_read(project, tmp_path):
    """The state is in the store: another runtime has it."""
    path = tmp_path / "looks.toml"
    finish = ask((), wave=2, finish=True)
    again = ask(["file:src/app.py", "search:helper"], wave=3)
    first = ask(["file:src/app.py", "search:helper"], wave=1)
    path.write_text("".join([first, finish, again, ask((), wave=4, finish=True)]))
    async with runtime_on(project.root) as runtime:
        sid = await runtime.start(
            "look into it", model=f"script:{path}", policy="reads", interactive=False
        )
        await asyncio.wait_for(runtime.run(sid), PATIENCE_S)
    async with runtime_on(project.root) as runtime:
        await runtime.say(sid, "go on")
        await asyncio.wait_for(runtime.run(sid), PATIENCE_S)
        third = seen(runtime.store, sid)[2]
        rows = runtime.store.read_now(lambda connection: read_guards(connection, ()))
        assert [(row.name, row.refused) for row in rows if row.refused] == [("redundant_read", 1)]
    assert refusals(third)["guard"] == "redundant_read", third.journal.keys()
    assert json.dumps(third.journal).count("in your context already") == 2
