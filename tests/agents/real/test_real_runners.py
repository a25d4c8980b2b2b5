"""Chains whose tasks real programs do, with a model on the loopback, and with one that does nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import state_for_tests
from agents.real.real_world import find_program, prepare
from agents.role_model import (
    answer_claude,
    answer_claude_over_acp,
    answer_codex,
    answer_codex_over_acp,
    answer_copilot,
    answer_kimi,
    answer_opencode,
    answer_qwen,
    answer_vibe,
    claim,
)
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


def test_a_chain_of_three_tasks_with_codex(tmp_path: Path) -> None:
    world = Chains.made(tmp_path, 3)
    with LoopbackThread([answer_codex] * 60) as server:
        home = world.project.config.parent / "home" / ".codex"
        home.mkdir(parents=True)
        (home / "config.toml").write_text(
            'model = "gpt-5"\nmodel_provider = "loopback"\n[model_providers.loopback]\nname = "loopback"\n'
            f'base_url = "{server.openai_url}"\nwire_api = "responses"\n',
            encoding="utf-8",
        )
        world.project.config.mkdir(exist_ok=True)
        (world.project.config / "config.toml").write_text(
            '[runner.codex]\ncommand = ["codex"]\nprotocol = "app-server"\n'
            f'hosts = ["127.0.0.1:{server.port}"]\n',
            encoding="utf-8",
        )
        world.project.extra |= {"PATH": agents_path(), "OPENAI_API_KEY": "sk-test"}
        told = work(world, "codex")
    assert world.statuses() == dict.fromkeys(("T-1", "T-2", "T-3"), "done"), told
    ended = world.rows("runner.ended")
    assert [row["status"] for row in ended] == ["finished"] * 9
    assert [row["format"] for row in world.rows("runner.started")] == ["app-server"] * 9


def test_a_chain_of_three_tasks_with_opencode_over_acp(tmp_path: Path) -> None:
    world = Chains.made(tmp_path, 3)
    with LoopbackThread([answer_opencode] * 90) as server:
        provider = {"options": {"baseURL": f"{server.url}/v1", "apiKey": "sk-test"}}
        settings = {
            "model": "anthropic/claude-sonnet-4-5",
            "small_model": "anthropic/claude-sonnet-4-5",
            "provider": {"anthropic": provider},
            "permission": {"edit": "ask", "bash": "ask"},
            "autoupdate": False,
        }
        agents = world.project.config / "agents"
        agents.mkdir(parents=True)
        # A registry's file of the user's own: its provider is a server on this machine.
        (agents / "loop.toml").write_text(
            'title = "opencode"\nprograms = ["opencode"]\n[acp]\ncommand = ["opencode", "acp"]\n'
            f"environment = {{ OPENCODE_CONFIG_CONTENT = '{json.dumps(settings)}' }}\n"
            '[sandbox]\naddresses = ["ANTHROPIC_BASE_URL"]\n'
            'variables = ["ANTHROPIC_BASE_URL", "OPENCODE_CONFIG_CONTENT"]\nhosts = ["models.dev"]\n',
            encoding="utf-8",
        )
        world.project.extra |= {"PATH": agents_path(), "ANTHROPIC_BASE_URL": server.url}
        told = work(world, "acp:loop")
    assert world.statuses() == dict.fromkeys(("T-1", "T-2", "T-3"), "done"), told
    assert [row["format"] for row in world.rows("runner.started")] == ["acp"] * 9
    assert {row["kind"] for row in world.rows("proposal.created")} == {"permission"}


MODELS = {
    "claude": answer_claude,
    "codex": answer_codex,
    "acp:claude": answer_claude_over_acp,
    "acp:codex": answer_codex_over_acp,
    "acp:opencode": answer_opencode,
    "acp:vibe": answer_vibe,
    "acp:qwen": answer_qwen,
    "acp:copilot": answer_copilot,
    "acp:kimi": answer_kimi,
}
"""What plays the model, by runner."""
PROGRAMS = {"acp:claude": "claude-agent-acp", "acp:codex": "codex-acp", "acp:vibe": "vibe-acp"}
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


@pytest.mark.parametrize("runner", [name for name in INSTALLED if name not in ("claude", "codex")])
def test_a_chain_of_three_tasks_over_acp(tmp_path: Path, runner: str) -> None:
    world = Chains.made(tmp_path, 3)
    with LoopbackThread([MODELS[runner]] * 120) as server:
        outside(world, runner, server)
        told = work(world, runner)
    assert world.statuses() == dict.fromkeys(("T-1", "T-2", "T-3"), "done"), told
    assert [row["status"] for row in world.rows("runner.ended")] == ["finished"] * 9
    decided = [row["decided_by"] for row in world.rows("proposal.approved")]
    assert decided == ["policy:all"] * 3


@pytest.mark.parametrize("runner", INSTALLED)
def test_an_agent_that_does_nothing_ends_no_task(tmp_path: Path, runner: str) -> None:
    world = Chains.made(tmp_path, 3)
    with LoopbackThread([claim] * 120) as server:
        outside(world, runner, server)
        told = work(world, runner)
    assert world.statuses() == dict.fromkeys(("T-1", "T-2", "T-3"), "blocked"), told
    for task in ("T-1", "T-2", "T-3"):
        shown = world.project.json("tasks", "show", task, "--json")
        assert shown["blocker"].startswith("The implementer used no tool and changed nothing.")
