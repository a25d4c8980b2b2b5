"""Learn: what the wave amounted to, and whether there is a next one.

The wave is judged in the transaction that completes it (:mod:`cockpit.learn.judge_waves`).
``finish`` ends the session when nothing else of the same answer went wrong. Source: RFC-003 §6.5.
"""

from __future__ import annotations

from cockpit.learn.judge_waves import learned
from cockpit.loop.wave_context import Here
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.sessions import SessionCompleted
from cockpit.store.sessions import events, outbox, plans, sessions, waves
from cockpit.store.sessions.plans import Plan

CONTINUED = "wave.continued"


def learn(tx: Tx, here: Here) -> None:
    """Take a wave from ``learning`` to ``completed``; in the same transaction, end the session or
    enqueue the event that brings its next wave."""
    session_id, wave_id = here.session.session_id, here.wave.wave_id
    plan = plans.find(tx.connection, wave_id)
    learned(tx, waves.advance(tx, wave_id, "completed"))
    if plan is None:
        return
    finish = _finish(plan)
    if finish is not None and _all_went_through(tx, here, plan):
        status, summary = finish
        sessions.set_status(
            tx,
            session_id,
            "completed",
            actor="agent",
            detail=SessionCompleted(status=status, summary=summary),
            result={"status": status, "summary": summary},
        )
    elif plan.calls or plan.stop in _unfinished(here):
        events.ingest(
            tx,
            source=here.session.source,
            source_event_id=wave_id,
            event_type=CONTINUED,
            payload={"wave_id": wave_id},
            trace_id=here.session.trace_id,
        )


def _unfinished(here: Here) -> tuple[str, ...]:
    """How an answer stops that goes on in the next wave. Whoever interrupts at the screen has the
    word; a session without one was ended from outside, and goes on when it is continued."""
    return ("length", "cut") if here.session.interactive else ("length", "cut", "interrupted")


def _finish(plan: Plan) -> tuple[str, str] | None:
    for call in plan.calls:
        if call["name"] == "finish" and not call["error"]:
            return str(call["arguments"]["status"]), str(call["arguments"]["summary"])
    return None


def _all_went_through(tx: Tx, here: Here, plan: Plan) -> bool:
    if any(call["error"] or call["name"] == "request_context" for call in plan.calls):
        return False
    ran = outbox.select_for_wave(tx.connection, here.wave.wave_id)
    return all(action.phase == "confirmed" for action in ran)
