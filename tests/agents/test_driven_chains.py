"""Chains whose agents ask for each permission by their own protocol: Claude Code's and Codex's."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from agents.runner_world import AGENT
from chains.chain_world import WORK, Chains

pytestmark = pytest.mark.slow

CHAIN_AGENT = AGENT.with_name("chain_agent.py")
PROTOCOLS = ("stdio", "app-server", "acp")
RUNNERS = {"stdio": "driven", "app-server": "driven", "acp": "acp:driven"}


def configure(world: Chains, protocol: str, *words: str, limits: str = "") -> None:
    """Write a runner ``driven`` whose agent speaks the protocol."""
    command = json.dumps([sys.executable, str(CHAIN_AGENT), protocol, *words])
    agents = world.project.config / "agents"
    agents.mkdir(parents=True, exist_ok=True)
    if protocol == "acp":
        (agents / "driven.toml").write_text(f'title = "Driven"\n[acp]\ncommand = {command}\n')
        (world.project.config / "config.toml").write_text(limits, encoding="utf-8")
        return
    (world.project.config / "config.toml").write_text(
        f'{limits}[runner.driven]\ncommand = {command}\nprotocol = "{protocol}"\n', encoding="utf-8"
    )


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_chain_of_three_tasks_ends_right(tmp_path: Path, protocol: str) -> None:
    world = Chains.made(tmp_path, 3)
    configure(world, protocol)
    told = world.project.run(*WORK, "--all", "--runner", RUNNERS[protocol]).stdout
    assert world.statuses() == dict.fromkeys(("T-1", "T-2", "T-3"), "done"), told
    assert [row["status"] for row in world.rows("runner.ended")] == ["finished"] * 9
    created = world.rows("proposal.created")
    assert [row["kind"] for row in created] == ["permission"] * 3
    decided = world.rows("proposal.approved")
    assert {row["decided_by"] for row in decided} == {"policy:all"}
    tokens = {"stdio": 30, "app-server": 35, "acp": 0}[protocol]
    spent = world.rows("model.completed")
    assert sum(row["input_tokens"] + row["output_tokens"] for row in spent) == 9 * tokens


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_agent_that_does_nothing_ends_no_task(tmp_path: Path, protocol: str) -> None:
    world = Chains.made(tmp_path, 3)
    configure(world, protocol, "idle")
    world.project.run(*WORK, "--all", "--runner", RUNNERS[protocol])
    assert world.statuses() == dict.fromkeys(("T-1", "T-2", "T-3"), "blocked")
    shown = world.project.json("tasks", "show", "T-1", "--json")
    assert shown["blocker"].startswith("The implementer used no tool and changed nothing.")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_without_an_answer_the_task_is_blocked_with_what_was_asked(
    tmp_path: Path, protocol: str
) -> None:
    world = Chains.made(tmp_path, 1)
    configure(world, protocol, limits="[approval]\ndeadline_s = 1\n")
    words = ("work", "--headless", "--all", "--approve", "ask", "--runner", RUNNERS[protocol])
    world.project.run(*words)
    shown = world.project.json("tasks", "show", "T-1", "--json")
    assert shown["status"] == "blocked"
    assert "It asked for" in shown["blocker"] and "part1.py" in shown["blocker"]
    assert "the deadline passed without a decision" in shown["blocker"]


def test_a_refused_permission_blocks_a_task_although_something_was_done(tmp_path: Path) -> None:
    world = Chains.made(tmp_path, 1)
    configure(world, "stdio", "refused")
    world.project.run(*WORK, "--all", "--runner", "driven")
    shown = world.project.json("tasks", "show", "T-1", "--json")
    assert shown["status"] == "blocked"
    assert "was refused 1 permission: Bash: sudo make install." in shown["blocker"]
    assert "Its work is kept." in shown["blocker"]
    (ended,) = [row for row in world.rows("runner.ended") if row["status"] == "finished"][:1]
    assert ended["refused"]
