"""Sessions that the screen drives: interrupted at any moment, none is left that nothing runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from agents.acp_client.acp_world import Acp, open_acp
from app_world import until

from cockpit.agents.acp_client import agent_session
from cockpit.app.application import CockpitApp
from cockpit.app.session_runs import SessionRuns
from cockpit.store.sessions import sessions

pytestmark = pytest.mark.slow


@pytest.fixture
async def acp(tmp_path: Path) -> AsyncIterator[Acp]:
    async with open_acp(tmp_path) as opened:
        opened.switch()
        yield opened


def runs_of(acp: Acp) -> SessionRuns:
    return SessionRuns(acp.runtime, lambda text: None, lambda: None)


@pytest.mark.parametrize("is_quit", [False, True])
async def test_an_interrupt_before_the_engine_has_the_session_stops_it(
    acp: Acp, is_quit: bool
) -> None:
    for turns in range(0, 6, 2):
        runs = runs_of(acp)
        session_id = await acp.start("answer x", interactive=True, where="checkout")
        runs.ensure_running(session_id)
        for _ in range(turns):
            await asyncio.sleep(0)
        if is_quit:
            await runs.stop()
        else:
            assert runs.interrupt(session_id)
            await acp.until(lambda runs=runs: not runs.any_running)
        session = acp.load(session_id)
        assert (session.status, session.lease_owner) == ("stopped", None), turns
        assert not runs.is_running(session_id)


async def test_a_session_is_stopping_until_its_agent_has_ended(
    acp: Acp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_session, "CANCEL_S", 0.3)
    acp.switch(cancel="ignored")
    session_id = await acp.start("hang", interactive=True)
    app = CockpitApp(acp.runtime, session_id=session_id)
    async with app.run_test(size=(100, 30)) as pilot:
        app.runs.ensure_running(session_id)
        await until(pilot, lambda: acp.rows(session_id, "runner.turn"))
        assert app.runs.interrupt(session_id)
        assert app.views(0, "").header.state == "stopping"
        assert [row.state for row in app.views(0, "").board.rows] == ["stopping"]
        await until(pilot, lambda: not app.runs.any_running)
        await until(pilot, lambda: app.views(0, "").header.state == "stopped")


async def test_a_session_of_the_user_s_own_terminal_is_not_stopped(acp: Acp) -> None:
    session_id = await acp.start("answer x", interactive=True)

    def make_it_theirs(tx) -> None:
        tx.execute("UPDATE sessions SET task_type=?, transport='hook'", (sessions.EXTERNAL_AGENT,))

    acp.world.store.write_now(make_it_theirs)
    runs = runs_of(acp)
    runs.ensure_running(session_id)
    runs.interrupt(session_id)
    await acp.until(lambda: not runs.any_running)
    assert acp.load(session_id).status == "running"


async def test_a_start_that_is_cancelled_leaves_no_session_that_runs(acp: Acp) -> None:
    begun = set()
    for pieces in range(0, 24, 6):
        starting = asyncio.create_task(acp.start("answer x", where="checkout"))
        for _ in range(pieces):
            await asyncio.sleep(0)
        starting.cancel()
        begun |= {
            each
            for each in await asyncio.gather(starting, return_exceptions=True)
            if isinstance(each, str)
        }
    rows = acp.world.store.read_now(sessions.select_of_agents)
    assert {row.status for row in rows if row.session_id not in begun} <= {"stopped"}
