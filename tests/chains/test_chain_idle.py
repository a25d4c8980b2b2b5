"""A chain whose agents do nothing: no word of theirs makes a task done."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from agents.runner_world import AGENT, Step, assistant, init, result, tool, tool_result
from chains.chain_world import WORK, Chains
from commands.cli_world import Project
from tasks.taskrun_world import git

pytestmark = pytest.mark.slow

CHANGED = "and a task of this type is done only with a change"
DENIED = {"tool_name": "Write", "tool_use_id": "t1", "tool_input": {"file_path": "part1.py"}}
LOOKS: list[Step] = [assistant(tool("t1", "Read", file_path="calc.py")), tool_result("t1", "…")]
IDLE: dict[str, tuple[list[Step], str]] = {
    "says that it is done": ([*LOOKS, result("STATUS: done\nAll is written.")], CHANGED),
    "uses no tool": (
        [result("STATUS: nothing to do\nIt is there.")],
        "used no tool and changed nothing",
    ),
    "ends in words": (
        [result("I have written all of it.")],
        "needs an answer. Its last words: I have",
    ),
    "asks back": ([result("Shall I write part1?")], "needs an answer. Its last words: Shall I"),
    "is refused": (
        [
            assistant(tool("t1", "Write", file_path="part1.py")),
            tool_result("t1", "no permission", is_error=True),
            result("STATUS: done\nI wrote it.", permission_denials=[DENIED]),
        ],
        "refused 1 permission: Write part1.py",
    ),
    "takes its change back": (
        [
            *LOOKS,
            {"write": "part1.py", "text": "x = 1\n"},
            {"run": ["rm", "part1.py"]},
            result("STATUS: done\nWritten."),
        ],
        CHANGED,
    ),
    "touches blank lines": (
        [
            {"replace": "calc.py", "old": "return a + b", "new": "return a + b   \n\n"},
            result("STATUS: done\nWritten."),
        ],
        "changed only blank lines and spaces",
    ),
    "is not confirmed": (
        [*LOOKS, result("STATUS: nothing to do\npart1.py is there.")],
        "The spec review failed again",
    ),
}


def configure(project: Project, steps: list[Step]) -> None:
    """Write a runner ``idle`` that plays ``steps`` in every role."""
    scenario = project.root.parent / "idle.json"
    scenario.write_text(json.dumps([init(), *steps]), encoding="utf-8")
    command = json.dumps([sys.executable, "-S", str(AGENT), str(scenario)])
    project.config.mkdir(exist_ok=True)
    (project.config / "config.toml").write_text(
        f'[runner.idle]\ncommand = {command}\nformat = "claude"\n', encoding="utf-8"
    )


def test_three_tasks_of_an_agent_that_does_nothing_are_blocked(tmp_path: Path) -> None:
    world = Chains.made(tmp_path, 3)
    configure(world.project, IDLE["says that it is done"][0])
    world.project.run(*WORK, "--all", "--runner", "idle")
    assert world.statuses() == dict.fromkeys(("T-1", "T-2", "T-3"), "blocked")
    for task_id in world.statuses():
        blocker = world.project.json("tasks", "show", task_id, "--json")["blocker"]
        assert blocker.startswith(f"The implementer changed nothing, {CHANGED}")
        assert "Its summary: All is written." in blocker
    assert git(world.root, "log", "-1", "--format=%s", "cockpit/ch-1") == "Add adds"


@pytest.mark.parametrize("kind", [*IDLE][1:])
def test_no_word_of_an_agent_makes_a_task_done(tmp_path: Path, kind: str) -> None:
    world = Chains.made(tmp_path, 1)
    steps, reason = IDLE[kind]
    configure(world.project, steps)
    world.project.run(*("work", "--task", "T-1", "--approve", "all", "--runner", "idle"), expect=3)
    shown = world.project.json("tasks", "show", "T-1", "--json")
    assert (shown["status"], reason in shown["blocker"]) == ("blocked", True), shown["blocker"]
