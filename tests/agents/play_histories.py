"""Play a recorded history against cockpit's own client, as it was recorded."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from agents import histories
from agents.acp_client.acp_world import open_acp
from agents.histories import Plain, converse, drive, read_outcome
from agents.runner_world import Runs
from tasks.taskrun_world import World

from cockpit.act.sandbox.sandbox_settings import SandboxChoices


async def play_conversation(folder: Path, name: str, history: Path) -> Any:
    """Play a conversation over ACP; returns what came of it."""
    folder.mkdir(exist_ok=True)
    counter = folder / "starts"
    async with open_acp(folder, sandbox=SandboxChoices(agents=False)) as acp:
        histories.write_agent(acp, name, histories.player(history, counter))
        try:
            session_id = await converse(acp, name)
        finally:
            check_complaints(counter)
        plain = Plain((acp.world.root, "{root}"))
        outcome = read_outcome(acp.world.store, session_id, plain, acp.said(session_id))
    check_complaints(counter)
    return outcome


async def play_run(folder: Path, history: Path) -> Any:
    """Play a run over Claude Code's own protocol; returns what came of it."""
    folder.mkdir(exist_ok=True)
    counter = folder / "starts"
    world = World.made(folder)
    runs = Runs(world.folder, world.place, world.store, world.task())
    command = histories.player(history, counter)
    try:
        session_id = await drive(runs, command, os.environ)
    finally:
        check_complaints(counter)
    plain = Plain((world.place.root, "{root}"))
    outcome = read_outcome(world.store, session_id, plain, runs.said())
    world.store.close()
    check_complaints(counter)
    return outcome


def check_complaints(counter: Path) -> None:
    """Fail with what cockpit did not say as it did when the history was recorded."""
    complaints = counter.with_name(f"{counter.name}.wrong")
    assert not complaints.exists(), complaints.read_text(encoding="utf-8")
