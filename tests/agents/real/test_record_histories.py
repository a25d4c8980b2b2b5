"""Histories of the real programs: recorded, played again at once, and kept with ``COCKPIT_RECORD=1``."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from agents import histories
from agents.acp_client.acp_world import open_acp
from agents.histories import ACP, DRIVEN, NO, RECORDED, Plain, converse, drive, read_outcome
from agents.play_histories import play_conversation, play_run
from agents.real.real_world import (
    INSTALLED,
    PATHS,
    command_call,
    edit_call,
    find_program,
    model,
    prepare,
)
from agents.runner_world import Runs
from loopback.replies import Reply, Say
from loopback.server import Loopback, Received
from tasks.taskrun_world import World

from cockpit.act.sandbox.sandbox_settings import SandboxChoices
from cockpit.agents.registry.known_agents import load_agents
from cockpit.core.secrets import mask

pytestmark = [pytest.mark.slow, pytest.mark.agents]

LARGEST = 60_000
"""Bytes of one history; all that are kept have 200,000 at most."""


def keep(name: str, history: Path, outcome: Any) -> None:
    """Check that a history holds no secret and is small; with ``COCKPIT_RECORD`` put it with the others."""
    text = history.read_text(encoding="utf-8")
    assert mask(text) == text
    assert len(text) < LARGEST, len(text)
    if os.environ.get("COCKPIT_RECORD"):
        RECORDED.mkdir(exist_ok=True)
        (RECORDED / f"{name}.jsonl").write_text(text, encoding="utf-8")
        body = json.dumps(outcome, ensure_ascii=False, separators=(",", ":")) + "\n"
        (RECORDED / f"{name}.outcome.json").write_text(body, encoding="utf-8")


def places(root: Path, home: Path, server: Loopback) -> Plain:
    return Plain(
        (root, "{root}"),
        (home, "{home}"),
        (f"127.0.0.1:{server.port}", "{server}"),
        (sys.prefix, "{python}"),
        (tempfile.gettempdir(), "{tmp}"),
        *((folder, "{programs}") for folder in os.environ["COCKPIT_AGENTS"].split(os.pathsep)),
    )


@pytest.mark.parametrize("name", [name for name in ACP if name in INSTALLED])
async def test_a_conversation_over_acp(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, raw, history = tmp_path / "home", tmp_path / "raw.jsonl", tmp_path / "history.jsonl"
    home.mkdir()
    monkeypatch.setattr("agents.acp_client.acp_world.PATIENCE_S", histories.PATIENCE_S)
    async with Loopback() as server:
        variables = prepare(name, home, server)
        for variable, value in {"HOME": str(home), "PATH": PATHS, **variables}.items():
            monkeypatch.setenv(variable, value)
        (tmp_path / "recorded").mkdir()
        outside = SandboxChoices(agents=False)
        async with open_acp(tmp_path / "recorded", sandbox=outside) as acp:
            command = load_agents().agents[name].acp.command
            histories.write_agent(acp, name, histories.recorder(raw, command), list(variables))
            server.play([model(name)] * 200)
            session_id = await converse(acp, name)
            root = acp.world.root
            plain = places(root, home, server)
            history.write_text(histories.write_plain(raw, plain))
            outcome = read_outcome(acp.world.store, session_id, plain, acp.said(session_id))
    keep(f"{name}-acp", history, outcome)
    played = await play_conversation(tmp_path / "played", name, history)
    assert histories.lines_of(played) == histories.lines_of(outcome)


def driven_model() -> Any:
    """A model that edits a file, runs a command, and gives its answer."""
    acts = 0

    def answer(request: Received) -> Reply:
        nonlocal acts
        tools = [tool.get("name", "") for tool in request.body.get("tools", [])]
        if "Write" not in tools:
            return Say("ok")
        acts += 1
        folder = Path(os.environ["COCKPIT_HISTORY_ROOT"])
        if acts == 1:
            return Say("I begin.", calls=(edit_call("claude", folder),))
        if acts == 2:
            return Say("", calls=(command_call("claude", "touch ran.txt", tools),))
        return Say("STATUS: done\nThe file is there.")

    return answer


@pytest.mark.skipif(find_program("claude") is None, reason="Claude Code is not installed")
async def test_a_run_over_claude_codes_own_protocol(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, raw, history = tmp_path / "home", tmp_path / "raw.jsonl", tmp_path / "history.jsonl"
    home.mkdir()
    (tmp_path / "recorded").mkdir()
    world = World.made(tmp_path / "recorded")
    monkeypatch.setenv("COCKPIT_HISTORY_ROOT", str(world.place.root))
    async with Loopback() as server:
        variables = prepare("claude", home, server)
        server.play([driven_model()] * 40)
        runs = Runs(world.folder, world.place, world.store, world.task())
        command = histories.recorder(raw, ("claude",))
        environment = {**os.environ, "HOME": str(home), "PATH": PATHS, **variables}
        session_id = await drive(runs, command, environment)
        plain = places(world.place.root, home, server)
        history.write_text(histories.write_plain(raw, plain))
        outcome = read_outcome(world.store, session_id, plain, runs.said())
    world.store.close()
    assert NO in json.dumps(outcome)
    keep(DRIVEN, history, outcome)
    played = await play_run(tmp_path / "played", history)
    assert histories.lines_of(played) == histories.lines_of(outcome)
