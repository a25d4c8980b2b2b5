"""Tasks whose roles an agent from outside takes, from the implementer to the merge."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from agents.runner_world import AGENT, Step, assistant, init, result, text
from msgspec.structs import replace
from tasks.taskrun_world import AT_ONCE, BRANCH, SOURCE, World, git

from cockpit.chains.progress_lines import ProgressLines
from cockpit.core.skills import skill_layers
from cockpit.loop.runtime_settings import RunnerSettings, RuntimeSettings
from cockpit.store.journal import journal
from cockpit.store.sessions import sessions
from cockpit.tasks.task_context import TaskOutcome

pytestmark = pytest.mark.slow

MEND: list[Step] = [
    init(),
    {"replace": "calc.py", "old": "a - b", "new": "a + b"},
    result("STATUS: done\nadd adds."),
]
PASS: list[Step] = [init(), result("VERDICT: PASS\nSound.")]

BY_ROLE = """
import json, runpy, sys
prompt = sys.stdin.read()
role = next(r for r in ("implementer", "fixer", "spec reviewer", "quality reviewer")
            if f"Your role: {r}" in prompt)
folder = sys.argv[2]
open(f"{folder}/prompt of {role}.md", "w", encoding="utf-8").write(prompt)
sys.argv = [sys.argv[1], f"{folder}/{role}.json"]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def runner(world: World, **roles: list[Step]) -> RunnerSettings:
    """A runner whose agent plays a scenario for each role."""
    folder = world.folder / "scenarios"
    folder.mkdir(exist_ok=True)
    plays = {"spec_reviewer": PASS, "quality_reviewer": PASS, **roles}
    for role, steps in plays.items():
        path = folder / f"{role.replace('_', ' ')}.json"
        path.write_text(json.dumps(steps), encoding="utf-8")
    command = (sys.executable, "-S", "-c", BY_ROLE, str(AGENT), str(folder))
    return RunnerSettings("small", command, "claude")


async def do(
    world: World, task_id: str, given: RunnerSettings | None, **changed: Any
) -> TaskOutcome:
    settings = RuntimeSettings(
        user_dir=world.folder / "config",
        environment=dict(os.environ),
        runners={} if given is None else {given.name: given},
    )
    return await world.do(AT_ONCE, task_id, runner="small", settings=settings, **changed)


async def test_a_task_is_done_by_an_agent_from_outside(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(skill_layers, "ENABLED", True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    task_id = world.task(description="It must add. Use the git skill.")
    ended = await do(world, task_id, runner(world, implementer=MEND))

    assert (ended.status, ended.reason) == ("done", "")
    assert [step for step, _ in world.steps(task_id)] == [
        "implement", "test", "spec_review", "quality_review", "merge", "done",
    ]  # fmt: skip
    assert world.show("calc.py").endswith("return a + b")
    assert "add adds." in world.handoff(task_id).summary
    assert (ended.tokens, ended.cost_usd) == (360, 0.75)
    made = world.rows("session.created")
    assert [row.raw_detail()["role"] for row in made] == [
        "implementer",
        "spec_reviewer",
        "quality_reviewer",
    ]
    assert {row.raw_detail()["model"] for row in made} == {"runner:small"}
    assert (world.root / "calc.py").read_text(encoding="utf-8") == SOURCE
    told = (world.folder / "scenarios" / "prompt of implementer.md").read_text(encoding="utf-8")
    assert "It must add." in told
    assert "STATUS: done" in told
    assert "Start with: calc.py" in told
    assert told.count("[skill:git]") == 1
    assert told.index("STATUS: done") < told.index("[skill:git]"), "guidance comes last"
    reviewed = (world.folder / "scenarios" / "prompt of spec reviewer.md").read_text()
    assert "You only read" in reviewed
    assert "+    return a + b" in reviewed


async def test_what_it_writes_into_the_users_checkout_is_said(world: World) -> None:
    (world.root / "mine.txt").write_text("as it was\n", encoding="utf-8")
    stray = {"write": str(world.root / "stray.txt"), "text": "x"}
    strays: list[Step] = [init(), stray, *MEND[1:]]
    task_id = world.task()
    given = replace(runner(world, implementer=strays), sandbox=False)
    assert (await do(world, task_id, given)).status == "done"
    rows = world.store.read_now(lambda seen: journal.rows(seen, limit=10_000))
    (noted,) = [row for row in rows if row.action == "runner.noted"]
    assert f"your checkout {world.root} changed: stray.txt." in noted.raw_detail()["message"]
    lines = ProgressLines("ch-1", {noted.session_id: "T-1 implementer"})
    line = lines.line_for(noted)
    assert line is not None and line.line.startswith("    ⚠ T-1 implementer: While small worked in")


async def test_a_crash_keeps_the_work_and_the_next_run_goes_on_with_it(world: World) -> None:
    task_id = world.task()
    crash: list[Step] = [
        init(),
        {"replace": "calc.py", "old": "a - b", "new": "a + b"},
        assistant(text("halfway")),
        {"exit": 7},
    ]
    ended = await do(world, task_id, runner(world, implementer=crash))
    assert (ended.status, ended.reason) == ("interrupted", "runner_crashed")
    assert world.read(task_id).status == "in_progress"
    tree = Path(world.tree(task_id).path)
    assert "a + b" in (tree / "calc.py").read_text(encoding="utf-8")

    ended = await do(world, task_id, runner(world, implementer=[init(), result("STATUS: done")]))
    assert ended.status == "done"
    assert world.show("calc.py").endswith("return a + b")
    assert world.store.read_now(sessions.find_latest) is None, "nothing for --continue last"
    (first, second) = world.rows("runner.started")[:2]
    assert (first.session_id, first.raw_detail()["number"]) == (second.session_id, 1)
    assert second.raw_detail()["number"] == 2
    told = (world.folder / "scenarios" / "prompt of implementer.md").read_text(encoding="utf-8")
    assert "An earlier run of yours was cut off" in told


async def test_no_task_is_to_blame_for_an_agent_that_is_not_there(world: World) -> None:
    task_id = world.task()
    for given, said in (
        (None, "There is no runner 'small'; available: embedded, claude, codex, acp:NAME."),
        (
            RunnerSettings("small", ("no-such-agent",)),
            "no-such-agent, the program of runner small, is not on",
        ),
    ):
        ended = await do(world, task_id, given)
        assert (ended.status, ended.reason) == ("interrupted", "no model: runner_missing")
        assert said in ended.summary
        assert world.read(task_id).status == "in_progress"


async def test_an_agent_that_leaves_its_branch_blocks_the_task_with_its_work_kept(
    world: World,
) -> None:
    task_id = world.task()
    leaves: list[Step] = [
        init(),
        {"run": ["git", "switch", "-qc", "mine"]},
        {"replace": "calc.py", "old": "a - b", "new": "a + b"},
        {"run": ["git", "commit", "-qam", "on my own"]},
        result("STATUS: done"),
    ]
    ended = await do(world, task_id, runner(world, implementer=leaves))
    assert ended.status == "blocked"
    assert "left the branch cockpit/T-1" in ended.reason
    assert world.show("calc.py", "mine").endswith("return a + b")


async def test_an_agent_moves_no_task_and_a_reviewers_changes_are_put_back(world: World) -> None:
    task_id = world.task()
    refused = world.folder / "refused.txt"
    script = world.folder / "moves.sh"
    script.write_text(
        f'"{sys.executable}" -P -m cockpit tasks move {task_id} done 2>> {refused}; echo $? >> {refused}\n'
        f'"{sys.executable}" -P -m cockpit tasks note {task_id} "Looked at it."\n',
        encoding="utf-8",
    )
    steps: list[Step] = [init(), {"run": ["sh", str(script)]}, *MEND[1:]]
    meddles: list[Step] = [
        init(),
        {"replace": "calc.py", "old": "a + b", "new": "a * b"},
        {"run": ["git", "commit", "-qam", "meddle"]},
        {"write": "stray.txt", "text": "x"},
        result("VERDICT: PASS"),
    ]
    ended = await do(world, task_id, runner(world, implementer=steps, spec_reviewer=meddles))
    assert ended.status == "done"
    assert world.show("calc.py").endswith("return a + b")
    assert git(world.root, "ls-tree", "--name-only", BRANCH) == "calc.py\ntest_calc.py"
    assert "meddle" not in git(world.root, "log", "--format=%s", BRANCH)
    said = refused.read_text(encoding="utf-8")
    assert "keeps itself how tasks stand" in said
    assert said.splitlines()[-1] == "3"
    (noted,) = [
        row
        for row in world.rows("task.activity")
        if row.raw_detail()["description"] == "Looked at it."
    ]
    assert noted.actor.startswith(f"agent/{task_id.lower()}/")


async def test_a_reviewer_that_is_interrupted_leaves_nothing(world: World) -> None:
    task_id = world.task()
    marker = world.folder / "hangs"
    meddles: list[Step] = [
        init(),
        {"write": "stray.txt", "text": "x"},
        {"run": ["git", "commit", "-qam", "meddle", "--allow-empty"]},
        {"hang": str(marker)},
    ]
    given = runner(world, implementer=MEND, spec_reviewer=meddles)
    running = asyncio.create_task(do(world, task_id, given))
    async with asyncio.timeout(60):
        while not marker.exists():
            await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    tree = Path(world.tree(task_id).path)
    assert not (tree / "stray.txt").exists()
    assert "meddle" not in git(tree, "log", "--format=%s")
    assert world.steps(task_id)[-1] == ("spec_review", None)
