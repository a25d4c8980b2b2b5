"""What a guard knows survives its process: a killed worker, the next worker, and the next role."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from chains.chain_world import WORK, Chains
from tasks.taskrun_world import PASSES, TEST, finish, turn

from cockpit.loop.session_state.read_session_state import FileRead, read_session_state
from cockpit.loop.session_state.state_overview import read_state_overview

pytestmark = pytest.mark.slow

ASKS = 'purpose = "look", question = "What is tested?", scope = ["file:test_calc.py"]'
LINES = (1, TEST.count("\n"))


def scenario(pace: float) -> str:
    """Everybody asks for the same file: the implementer twice, and the spec reviewer."""
    again = turn(
        "implementer",
        "request_context",
        ASKS,
        when='called = ["request_context"], not_contains = ["Nothing was read"]',
    ).replace("[[turn.call]]", f'text = "Once more."\npace = {pace}\n[[turn.call]]')
    wrote = 'path = "part1.py", content = "x = 1\\n"'
    refused = 'contains = ["Your role: implementer", "Nothing was read"]'
    writes = turn("implementer", "write_file", wrote).replace(
        'contains = ["Your role: implementer"]', refused
    )
    return (
        turn("implementer", "request_context", ASKS)
        + again
        + writes
        + finish("implementer", "It is there.", when='called = ["write_file"]')
        + PASSES
        + turn("spec reviewer", "request_context", ASKS, when="wave = 1")
    )


def test_a_worker_that_dies_and_the_next_role_know_what_was_read(tmp_path: Path) -> None:
    world = Chains.made(tmp_path, 1)
    world.project.extra = {**(world.project.extra or {}), "COCKPIT_SESSION_TOKEN_LIMIT": "2000"}
    running = world.project.start(*WORK, "--all", *world.model(scenario(60)))
    world.told(running, "T-1 · implement")
    while len(world.rows("wave.oriented")) < 2:
        assert running.poll() is None
    # The worker has read this file; the next process plays without the pause.
    world.model(scenario(0))
    (first,) = world.sessions()
    before = state_of_role(world, "implementer")
    os.kill(first.pid, signal.SIGKILL)
    code, text = world.end(running)
    assert code == 0, text
    assert world.statuses() == {"T-1": "done"}
    workers = world.sessions()
    assert [worker.status for worker in workers[:2]] == ["crashed", "clean"]
    assert len({worker.pid for worker in workers}) == len(workers) >= 3

    # The process that resumed the session refused the request from the store's state alone.
    after = state_of_role(world, "implementer")
    assert [key(file) for file in before] == [("test_calc.py", *LINES)]
    assert after[0].version == before[0].version
    refusals = world.rows("context.refused")
    assert [row["guard"] for row in refusals] == ["redundant_read", "redundant_read"]
    assert all(row["message"].startswith("Nothing was read: file:test_calc.py") for row in refusals)
    # The reviewer runs in a further process, and starts from the lines in the version that was read.
    words = world.read(select_words)["spec_reviewer"]
    version = before[0].version[:16]
    assert "### Read Before" in words
    assert "- `file:test_calc.py`: implementer in s-" in words
    assert f"version {version}, unchanged" in words
    reviewer = world.read(lambda seen: read_state_overview(seen, session_of(seen, "spec_reviewer")))
    assert ("test_calc.py", *LINES) in {key(file) for file in reviewer.state.files_read}
    proposed = [row for row in world.rows("context.requested") if not row["auto"]]
    assert len(proposed) == 1, "nobody asks you a second time"


def state_of_role(world: Chains, role: str) -> list[FileRead]:
    read: list[FileRead] = world.read(
        lambda seen: list(read_session_state(seen, session_of(seen, role)).files_read)
    )
    return [file for file in read if file.path == "test_calc.py"]


def session_of(connection: Any, role: str) -> str:
    (session_id,) = connection.execute(
        "SELECT session_id FROM sessions WHERE role=?", (role,)
    ).fetchone()
    return str(session_id)


def select_words(connection: Any) -> dict[str, str]:
    return dict(connection.execute("SELECT role, words FROM sessions"))


def key(file: FileRead) -> tuple[str, int, int]:
    return file.path, file.first, file.last
