"""A chain whose agents do nothing: no word of theirs makes a task done."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from agents.runner_world import AGENT, Step, assistant, init, result, tool, tool_result
from chains.chain_world import Chains
from commands.cli_world import Project

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
    "is refused": (
        [
            assistant(tool("t1", "Write", file_path="part1.py")),
            tool_result("t1", "no permission", is_error=True),
            result("STATUS: done\nI wrote it.", permission_denials=[DENIED]),
        ],
        "refused 1 permission: Write part1.py",
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


def test_no_word_of_an_agent_makes_a_task_done(tmp_path: Path) -> None:
    world = Chains.made(tmp_path, len(IDLE))
    for number, (kind, (steps, reason)) in enumerate(IDLE.items(), start=1):
        configure(world.project, steps)
        words = ("work", "--task", f"T-{number}", "--approve", "all", "--runner", "idle")
        world.project.run(*words, expect=3)
        shown = world.project.json("tasks", f"T-{number}", "--json")
        assert shown["status"] == "blocked", kind
        assert reason in shown["blocker"], (kind, shown["blocker"])
