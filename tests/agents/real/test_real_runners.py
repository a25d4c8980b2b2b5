"""Chains whose tasks real programs do, with a model on the loopback, and with one that does nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import state_for_tests
from agents.real.real_world import find_program, prepare
from agents.role_model import IN_WORDS, answer_claude, answer_codex_over_acp, claim
from chains.chain_world import WORK, Chains
from loopback.server import Loopback, LoopbackThread

pytestmark = [pytest.mark.slow, pytest.mark.agents]


def agents_path() -> str:
    return f"{os.environ['COCKPIT_AGENTS']}:{os.environ['PATH']}"


def work(world: Chains, runner: str) -> str:
    """Run a chain in a process of its own: agents in the sandbox start cockpit by its real interpreter."""
    env = {state_for_tests.VARIABLE: state_for_tests.folder(), **world.project.env}
    words = (sys.executable, "-P", "-m", "cockpit", *WORK, "--all", "--runner", runner)
    done = subprocess.run(
        words, cwd=world.root, env=env, capture_output=True, text=True, timeout=600
    )
    told = done.stdout + done.stderr
    assert done.returncode == 0, told
    return told


def test_a_chain_of_three_tasks_with_claude_code(tmp_path: Path) -> None:
    world = Chains.made(tmp_path, 3)
    with LoopbackThread([answer_claude] * 60) as server:
        world.project.extra |= {
            "PATH": agents_path(),
            "ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_API_KEY": "sk-test",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }
        told = work(world, "claude")
    assert world.statuses() == dict.fromkeys(("T-1", "T-2", "T-3"), "done"), told
    ended = world.rows("runner.ended")
    assert [row["status"] for row in ended] == ["finished"] * 9
    assert sum(row["tools"] for row in ended) == 3
    assert [row["format"] for row in world.rows("runner.started")] == ["stdio"] * 9


MODELS = {"claude": answer_claude, "codex": answer_codex_over_acp, **IN_WORDS}
"""What plays the model, by runner."""
PROGRAMS = {"acp:claude": "claude-agent-acp", "codex": "codex-acp", "acp:vibe": "vibe-acp"}
INSTALLED = [
    runner
    for runner in MODELS
    if find_program(PROGRAMS.get(runner, runner.removeprefix("acp:"))) is not None
]


def outside(world: Chains, runner: str, server: Loopback) -> None:
    """Let the runner work outside of the sandbox, where it reaches its model on this machine."""
    home = world.project.config.parent / "home"
    home.mkdir(exist_ok=True)
    variables = prepare(runner.removeprefix("acp:"), home, server)
    world.project.config.mkdir(exist_ok=True)
    (world.project.config / "config.toml").write_text("[sandbox]\nagents = false\n")
    world.project.extra |= {"PATH": agents_path(), "HOME": str(home), **variables}


@pytest.mark.parametrize("runner", [name for name in INSTALLED if name != "claude"])
def test_a_chain_of_three_tasks_over_acp(tmp_path: Path, runner: str) -> None:
    world = Chains.made(tmp_path, 3)
    with LoopbackThread([MODELS[runner]] * 120) as server:
        outside(world, runner, server)
        told = work(world, runner)
    assert world.statuses() == dict.fromkeys(("T-1", "T-2", "T-3"), "done"), told
    assert [row["status"] for row in world.rows("runner.ended")] == ["finished"] * 9
    decided = [row["decided_by"] for row in world.rows("proposal.decided")]
    assert decided == ["policy:all"] * 3


@pytest.mark.parametrize("runner", INSTALLED)
def test_an_agent_that_does_nothing_ends_no_task(tmp_path: Path, runner: str) -> None:
    world = Chains.made(tmp_path, 3)
    with LoopbackThread([claim] * 120) as server:
        outside(world, runner, server)
        told = work(world, runner)
    assert world.statuses() == dict.fromkeys(("T-1", "T-2", "T-3"), "blocked"), told
    for task in ("T-1", "T-2", "T-3"):
        shown = world.project.json("tasks", task, "--json")
        assert shown["blocker"].startswith("The implementer used no tool and changed nothing.")
