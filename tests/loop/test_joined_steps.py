"""Steps of a wave with nothing outside the store between them are one transaction."""

from __future__ import annotations

import asyncio

import pytest

from cockpit.core.errors import Stale
from cockpit.loop import session_loop
from cockpit.loop.phases import orienting
from cockpit.orient.select_facts import PinnedOverBudget
from cockpit.orient.verify_packet import recompile_packet
from cockpit.store.context import packets
from cockpit.store.journal import journal, verify_chain
from cockpit.store.journal.event_types import Action
from cockpit.store.sessions import plans, sessions, waves

pytestmark = pytest.mark.slow

TALK = """
[[turn]]
text = "Once more."
[[turn.call]]
name = "request_context"
arguments = { purpose = "a test", question = "what is in it?", scope = ["file:none.py"], escalation = "" }
[[turn]]
when = { wave_from = 4 }
text = "That is all."
[[turn.call]]
name = "finish"
arguments = { status = "done", summary = "done" }
"""


async def run(opened, script, text=TALK):
    """Run a session; returns it with its waves, its rows of the journal, and its commits."""
    async with opened(policy="all") as runtime:
        sid = await runtime.start("look", model=script(text), interactive=False)
        before = runtime.store.commits
        session = await runtime.run(sid)
        commits = runtime.store.commits - before
        seen = await runtime.store.read(lambda c: waves.select_for_session(c, sid))
        rows = await runtime.store.read(lambda c: journal.rows(c, session_id=sid))
        for wave in seen:
            assert (await runtime.store.read(lambda c, w=wave: recompile_packet(c, w.wave_id))).ok
        assert runtime.store.read_now(verify_chain.verify).ok
        assert session.result["status"] == "done"
        return seen, rows, commits


async def test_a_packet_and_its_call_are_stored_with_the_beginning_of_the_wave(opened, script):
    seen, _, first = await run(opened, script)
    assert [wave.phase for wave in seen] == ["completed"] * 4
    # Of the first one the packet was compiled outside of a transaction: its vocabulary was to be loaded.
    _, _, commits = await run(opened, script)
    assert first == commits + 1
    _, _, more = await run(opened, script, TALK.replace("wave_from = 4", "wave_from = 9"))
    assert more - commits == 2 * 5


async def test_every_step_is_journalled_as_if_it_were_alone(opened, script, monkeypatch):
    _, joined, fewer = await run(opened, script)
    monkeypatch.setattr(orienting, "MOST_AT_ONCE", -1)
    _, apart, more = await run(opened, script)
    assert fewer < more
    # The second session has the first one as its history, so it is estimated otherwise.
    assert _without_estimates(joined) == _without_estimates(apart)


def _without_estimates(rows):
    return [row.action for row in rows if not row.action.startswith("estimate.")]


async def test_a_plan_that_runs_nothing_is_stored_with_the_end_of_its_wave(opened, script):
    text = '[[turn]]\ntext = "Only words."\n'
    async with opened(policy="all") as runtime:
        sid = await runtime.start("look", model=script(text), interactive=False)
        session = await runtime.run(sid)
        assert session.result["status"] == sessions.NEEDS_ANSWER
        assert session.result["summary"] == "Only words."
        (wave,) = await runtime.store.read(lambda c: waves.select_for_session(c, sid))
        assert wave.phase == "completed"
        assert (
            await runtime.store.read(lambda c: plans.find(c, wave.wave_id))
        ).text == "Only words."
        rows = await runtime.store.read(
            lambda c: c.execute("SELECT action, seals FROM journal").fetchall()
        )
    at = [action for action, _ in rows].index(str(Action.MODEL_COMPLETED))
    # The last row of a transaction has the seals of all that it wrote.
    sealed = [action for action, seals in rows[at:] if seals]
    assert len(sealed) == 1


async def test_pins_that_pass_the_budget_fail_the_wave_that_has_them(opened, script, monkeypatch):
    compile_to_fit, tried = orienting.compile_to_fit, []

    def crowded(facts, profile, ordinal, *rest):
        tried.append(ordinal)
        if ordinal == 3 and tried.count(3) <= 2:
            raise PinnedOverBudget("The pinned facts need too many tokens.")
        return compile_to_fit(facts, profile, ordinal, *rest)

    monkeypatch.setattr(orienting, "compile_to_fit", crowded)
    async with opened(policy="all") as runtime:
        sid = await runtime.start("look", model=script(TALK), interactive=False)
        with pytest.raises(PinnedOverBudget):
            await runtime.run(sid)
        seen = await runtime.store.read(lambda c: waves.select_for_session(c, sid))
        assert [wave.phase for wave in seen] == ["completed", "completed", "failed_retryable"]
        assert seen[-1].reentry_phase == "orienting"
        assert (await runtime.store.read(lambda c: packets.find(c, seen[-1].wave_id))) is None
        assert (await runtime.run(sid)).result["status"] == "done"


async def test_a_lease_that_is_given_up_stops_nothing_that_renews_it(opened, script, monkeypatch):
    monkeypatch.setattr(session_loop, "HEARTBEAT_S", 0)
    async with opened(policy="all") as runtime:
        for _ in range(8):
            sid = await runtime.start("look", model=script(TALK), interactive=False)
            assert (await runtime.run(sid)).result["status"] == "done"
            owner = await runtime.store.read(
                lambda c, s=sid: c.execute(
                    "SELECT lease_owner FROM sessions WHERE session_id=?", (s,)
                ).fetchone()
            )
            assert owner == (None,)
        over = session_loop._Lease(sid, "given-up", is_over=True)
        lost: list[Stale] = []
        await session_loop._renew_lease(runtime.engine, over, asyncio.current_task(), lost)
        assert lost == []
