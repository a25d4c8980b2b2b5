"""Learn: judge the wave, and end the session or enqueue the next wave.

The wave is judged in the transaction that completes it (:mod:`cockpit.learn.judge_waves`). ``finish`` ends
the session when every other call of the same answer succeeded. See ``docs/reference/loop.md``, phases.
"""

from __future__ import annotations

import sqlite3

from cockpit.learn.judge_waves import judge_after_wave
from cockpit.learn.notes.reflect import reflect
from cockpit.loop.decisions.propose_changing import CHANGING
from cockpit.loop.decisions.suggest_weights import suggest_weights
from cockpit.loop.phases.project_change import find_finish, has_changed_nothing
from cockpit.loop.phases.reading_calls import asks_to_read
from cockpit.loop.planner.follow_session import correct_estimate, learn_session
from cockpit.loop.planner.plan_tool import check_finish, find_plan_end
from cockpit.loop.reentry.kept_actions import release_all
from cockpit.loop.views.review_text import is_missing_on_github
from cockpit.loop.wave_context import WaveContext
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.sessions import SessionCompleted
from cockpit.store.sessions import events, outbox, plans, sessions, waves
from cockpit.store.sessions.plans import Plan
from cockpit.store.sessions.waves import Wave

CONTINUED = "wave.continued"
"""The event that begins the next wave of a session that continues without the user."""

_NOT_POSTED = "Not posted: GitHub has taken nothing of this session."
_NOTHING_CHANGED = "Nothing was changed: this session wrote no file and made no commit."


async def learn(context: WaveContext) -> Wave:
    """Take a wave from ``learning`` to ``completed``, and end the session or enqueue its next wave.

    An end says so where the task needs a change and there is none; a task of the backlog is blocked by it,
    and every task whose edit was refused or failed.
    """
    changed_nothing = await has_changed_nothing(context)

    def write(tx: Tx) -> Wave:
        wave_id = context.wave.wave_id
        events.ack_owned(tx, wave_id)
        wave = waves.advance(tx, wave_id, "completed")
        judged = judge_after_wave(tx, wave)
        if any(each.assessment.missed or each.assessment.regrets for each in judged):
            suggest_weights(tx, context)
        plan = plans.find(tx.connection, wave_id)
        if plan is not None and not _end_session(tx, context, plan, changed_nothing):
            _continue_session(tx, context, plan)
        return wave

    return await context.store.write(write)


def _end_session(tx: Tx, context: WaveContext, plan: Plan, changed_nothing: bool) -> bool:
    """End the session if the plan's ``finish`` counts; returns whether it has ended."""
    session_id = context.session.session_id
    finish = find_finish(plan)
    end = finish if finish is not None and _has_only_successes(tx, context, plan) else None
    end = find_plan_end(tx, context, plan) or end
    if end is None:
        return False
    status, summary = check_finish(tx, context.session, end)
    if status == "done" and is_missing_on_github(tx.connection, session_id):
        status, summary = "blocked", f"{_NOT_POSTED} The agent's words: {summary}"
    unwritten = _list_unwritten(tx.connection, session_id) if status == "done" else []
    if changed_nothing:
        summary = f"{summary.rstrip()}\n\n{_NOTHING_CHANGED}"
        status = "blocked" if context.session.task_id or unwritten else status
    if unwritten:
        summary = (
            f"{summary.rstrip()}\n\nEdits that were refused or failed: {', '.join(unwritten)}."
        )
    learn_session(tx, sessions.load_in(tx, session_id), status)
    session = sessions.set_status(
        tx,
        session_id,
        "completed",
        actor="agent",
        detail=SessionCompleted(status=status, summary=summary),
        result={"status": status, "summary": summary},
    )
    release_all(tx, session_id, context.wave.wave_id, "the agent finished without it")
    reflect(tx, session)
    if context.engine.settings.on_session_end is not None:
        context.engine.settings.on_session_end(tx, session)
    return True


def _continue_session(tx: Tx, context: WaveContext, plan: Plan) -> None:
    """Correct an estimate that is passed, and enqueue the next wave where the answer asks for one."""
    session_id, wave_id = context.session.session_id, context.wave.wave_id
    correct_estimate(tx, sessions.load_in(tx, session_id), context.wave.ordinal)
    if plan.calls or plan.stop in _continuing_stops(context):
        events.ingest(
            tx,
            source=context.session.source,
            source_event_id=wave_id,
            event_type=CONTINUED,
            payload={"wave_id": wave_id},
            trace_id=context.session.trace_id,
        )


def _continuing_stops(context: WaveContext) -> tuple[str, ...]:
    """Return the reasons to stop an answer after which the next wave continues it.

    A user who interrupts at the screen says what comes next; a headless session was interrupted from
    outside, and continues when it is resumed.
    """
    return ("length", "cut") if context.session.interactive else ("length", "cut", "interrupted")


def _list_unwritten(connection: sqlite3.Connection, session_id: str) -> list[str]:
    """Return the files whose last edit was refused or failed."""
    is_written: dict[str, bool] = {}
    for action in outbox.select_for_session(connection, session_id):
        if action.action_type in ("write_file", "edit_file"):
            is_written[str(action.payload.get("path", ""))] = action.phase == "confirmed"
    return [path for path, written in is_written.items() if not written]


def _has_only_successes(tx: Tx, context: WaveContext, plan: Plan) -> bool:
    if any(call["error"] or asks_to_read(call) for call in plan.calls):
        return False
    actions = outbox.select_for_wave(tx.connection, context.wave.wave_id)
    keys = {action.key for action in actions}
    counted = [action for action in actions if f"{action.key}{CHANGING}" not in keys]
    return all(action.phase == "confirmed" for action in counted)
