"""The real programs over ACP, with a loopback server as their model: ``make test-agents``.

Each agent that is installed edits a file that is approved, is refused a command with words, is closed and
taken up again, is interrupted and killed. ``COCKPIT_AGENTS`` names folders of programs before the PATH.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
import shutil
import signal
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from agents.acp.acp_world import Acp, open_acp
from loopback.replies import Reply, Say, Use
from loopback.server import Loopback, Received

from cockpit.act.sandbox.choices import SandboxChoices
from cockpit.agents.registry.known_agents import load_agents

pytestmark = [pytest.mark.slow, pytest.mark.agents]

PATHS = os.pathsep.join(
    filter(None, (os.environ.get("COCKPIT_AGENTS", ""), os.environ.get("PATH", "")))
)
ALL = ("claude", "codex", "opencode", "vibe")
INSTALLED = [
    name
    for name in ALL
    if shutil.which(load_agents().agents[name].acp.command[0], path=PATHS) is not None
]
CONFINED = [name for name in INSTALLED if name == "claude"]
"""Tried in the sandbox as well; the loopback server counts as its provider by its own variable."""
PATIENCE_S = 90.0


def prepare(name: str, home: Path, server: Loopback) -> dict[str, str]:
    """Point the agent at the loopback server; returns its variables."""
    match name:
        case "claude":
            (home / ".claude.json").write_text(json.dumps({"hasCompletedOnboarding": True}))
            return {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "sk-test"}
        case "codex":
            (home / ".codex").mkdir()
            (home / ".codex" / "config.toml").write_text(
                'model = "gpt-5"\nmodel_provider = "lo"\n[model_providers.lo]\nname = "lo"\n'
                f'base_url = "{server.openai_url}"\nwire_api = "responses"\nenv_key = "OPENAI_API_KEY"\n'
            )
            return {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": server.openai_url}
        case "opencode":
            folder = home / ".config" / "opencode"
            folder.mkdir(parents=True)
            model = {"name": "m", "limit": {"context": 100_000, "output": 8_000}}
            provider = {
                "npm": "@ai-sdk/anthropic",
                "name": "lo",
                "options": {"baseURL": server.openai_url, "apiKey": "k"},
                "models": {"m": model},
            }
            settings = {"model": "lo/m", "small_model": "lo/m", "provider": {"lo": provider}}
            (folder / "opencode.json").write_text(json.dumps(settings))
            return {}
        case _:
            (home / ".vibe").mkdir()
            (home / ".vibe" / "config.toml").write_text(
                'active_model = "m"\nenable_update_checks = false\nenable_telemetry = false\n'
                f'[[providers]]\nname = "lo"\napi_base = "{server.openai_url}"\n'
                'api_key_env_var = "MISTRAL_API_KEY"\nbackend = "generic"\n'
                '[[models]]\nname = "m"\nprovider = "lo"\nalias = "m"\n'
            )
            return {"MISTRAL_API_KEY": "sk-test"}


def call(name: str, act: str, root: Path, tools: list[str]) -> Use:
    """The tool call by which the model of this agent does ``act``."""
    number = next(_NUMBERS)
    command = "touch made.txt" if act == "edit" else "touch ran.txt"
    match name:
        case "codex":
            arguments: dict[str, Any] = {
                "cmd": command,
                "sandbox_permissions": "require_escalated",
                "justification": "to write",
            }
            return Use("exec_command", arguments, call_id=f"call_{number}")
        case "claude" if act == "edit":
            made = {"file_path": str(root / "made.txt"), "content": "hi\n"}
            return Use("Write", made, call_id=f"toolu_{number}")
        case "opencode" if act == "edit":
            made = {"filePath": str(root / "made.txt"), "content": "hi\n"}
            return Use("write", made, call_id=f"toolu_{number}")
        case "vibe" if act == "edit":
            return Use("write_file", {"path": "made.txt", "content": "hi\n"}, call_id=f"c_{number}")
    shell = next(tool for tool in tools if tool.lower() == "bash")
    arguments = {"command": command}
    if name != "vibe":
        arguments["description"] = "try"
    return Use(shell, arguments, call_id=f"call_{number}")


_NUMBERS = itertools.count(1)
_ACTS = re.compile(r"(edit|command) now (\d+)")


def model(name: str, root: Callable[[], Path]) -> Callable[[Received], Reply]:
    """A model that does what the user's last words name, once, and then says that it is done."""
    begun: set[tuple[str, str]] = set()

    def answer(request: Received) -> Reply:
        tools = [
            tool.get("name") or tool.get("function", {}).get("name") or ""
            for tool in request.body.get("tools", [])
        ]
        if not tools:
            return Say("A title")
        entries = request.body.get("messages") or request.body.get("input")
        while len(entries) > 1 and entries[-1].get("role") in ("system", "developer"):
            entries = entries[:-1]
        text = json.dumps(entries[-1])
        # Agents join the results of tools and later words as they like, so each word counts once.
        words = _ACTS.findall(text)
        if words and words[-1] not in begun:
            begun.add(words[-1])
            return Say("I begin.", calls=(call(name, words[-1][0], root(), tools),))
        refused = "use the Makefile" in text
        return Say("I will use the Makefile." if refused else "All done here.")

    return answer


@dataclass
class Real:
    """A real agent in a project, and the server that plays its model."""

    name: str
    acp: Acp
    server: Loopback

    async def start(self, words: str) -> str:
        return await self.acp.runtime.start_agent(self.name, words, interactive=True)

    async def decide(self, session_id: str, words: str = "") -> Any:
        """Run the session, approve what it asks for, or reject it with ``words``; returns the session."""
        task = self.acp.begin(session_id)
        asking = asyncio.ensure_future(self.acp.asked())
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.wait([task, asking], return_when=asyncio.FIRST_COMPLETED)
            assert asking.done(), (self.acp.rows(session_id)[-5:], self.acp.said(session_id))
            (proposal,) = asking.result()
            await (self.acp.reject(proposal, words) if words else self.acp.approve(proposal))
            return await task


@pytest.fixture(
    params=[*((name, False) for name in INSTALLED), *((name, True) for name in CONFINED)]
)
async def real(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Real]:
    name, confined = request.param
    home = tmp_path / "home"
    home.mkdir()
    async with Loopback() as server:
        variables = prepare(name, home, server)
        for variable, value in {"HOME": str(home), "PATH": PATHS, **variables}.items():
            monkeypatch.setenv(variable, value)
        choices = SandboxChoices() if confined else SandboxChoices(agents=False)
        async with open_acp(tmp_path, sandbox=choices) as acp:
            server.play([model(name, lambda: acp.world.root)] * 80)
            yield Real(name, acp, server)


async def test_an_edit_is_approved_a_command_refused_and_the_session_taken_up(real: Real) -> None:
    acp, root = real.acp, real.acp.world.root
    session_id = await real.start("edit now 1")
    session = await real.decide(session_id)
    assert (root / "made.txt").exists() and session.status == "waiting"
    await acp.runtime.say(session_id, "command now 2")
    session = await real.decide(session_id, "use the Makefile")
    assert not (root / "ran.txt").exists()
    assert acp.said(session_id)[-1].endswith("I will use the Makefile.")
    assert session.input_tokens > 0
    await acp.runtime.agents().close()
    (root / "made.txt").unlink()
    await acp.runtime.say(session_id, "edit now 3")
    await real.decide(session_id)
    assert (root / "made.txt").exists()
    joined = acp.rows(session_id, "runner.joined")
    assert len({row["agent_session"] for row in joined}) == 1, "the same session of the agent"


async def test_an_interrupted_agent_withdraws_and_a_killed_one_fails(real: Real) -> None:
    acp = real.acp
    session_id = await real.start("command now 1")
    task = acp.begin(session_id)
    async with asyncio.timeout(PATIENCE_S):
        await acp.asked()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert acp.pending() == [] and acp.load(session_id).status == "stopped"
    await acp.runtime.say(session_id, "command now 2")
    task = acp.begin(session_id)
    async with asyncio.timeout(PATIENCE_S):
        await acp.asked()
        os.killpg(int(acp.load(session_id).pid.partition("/")[0]), signal.SIGKILL)
        session = await task
    assert session.status == "failed" and acp.pending() == []
    assert not (acp.world.root / "ran.txt").exists()


async def test_two_at_once_ask_in_one_queue(real: Real) -> None:
    acp = real.acp
    ids = [await real.start(f"command now {place}") for place in range(2)]
    tasks = [acp.begin(session_id) for session_id in ids]
    async with asyncio.timeout(PATIENCE_S):
        for proposal in await acp.asked(2):
            await acp.approve(proposal)
        assert {(await task).status for task in tasks} == {"waiting"}


def test_there_is_an_agent_to_try() -> None:
    assert INSTALLED, f"none of {', '.join(ALL)} is on the PATH or in COCKPIT_AGENTS"
