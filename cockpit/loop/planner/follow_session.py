"""Revising a session's estimate after its waves, and learning from the session when it is done.

Only sessions that end as ``done`` teach: one that was stopped, failed, blocked or cut off at a limit says
nothing about what its task takes. See ``docs/reference/planner.md``, revising and learning.
"""

from __future__ import annotations

import sqlite3

from msgspec import UNSET
from msgspec.structs import replace

from cockpit.core.text import pluralize
from cockpit.decide.planner.estimate import Estimate, Point, Span, Used, revise
from cockpit.loop.planner.estimate_kinds import kind_of_session
from cockpit.loop.planner.estimate_session import EstimateInput, estimate_kind
from cockpit.loop.planner.stored_estimate import (
    describe_expected,
    read_estimate,
    write_estimate,
)
from cockpit.store.db.transaction import Tx
from cockpit.store.estimates import estimates
from cockpit.store.estimates.estimates import EstimateRow
from cockpit.store.journal.details.estimates import EstimateLearned, EstimateRevised
from cockpit.store.journal.event_types import Action
from cockpit.store.sessions import waves
from cockpit.store.sessions.sessions import RUNNER_PREFIX, Session

MATERIAL, MATERIAL_TOKENS = 0.2, 0.5
"""The shares by which the likely waves, and tokens, change before a revision is stored and shown."""

_WORK = (Action.MODEL_COMPLETED, Action.ACTION_CONFIRMED, Action.ACTION_FAILED)
"""Events whose latency is the time of a model or a program."""


def revise_estimate(tx: Tx, session: Session, done: int) -> None:
    """Revise the estimate of a session that is not done after ``done`` waves, where it changes enough."""
    row = estimates.find(tx.connection, session.session_id)
    if row is None or row.learned_seq is not None:
        return
    first, now = read_estimate(row.made_json), read_estimate(row.now_json)
    if first is None or now is None:
        return
    kind, why = kind_of_session(session), ""
    if kind != row.kind:
        first, why = (
            _begin_again(tx, row, kind, first, done),
            f"its task type is {session.task_type} now",
        )
    used = Used(done, session.input_tokens + session.output_tokens, session.cost_usd)
    revised = revise(first, used)
    if not why:
        why = _find_reason(first, now, revised, done, "turn" if row.family == "agent" else "wave")
    if not why:
        return
    estimates.set_now(tx, row.subject, write_estimate(revised))
    event = EstimateRevised(
        subject=row.subject,
        unit=row.unit,
        kind=kind,
        expected=describe_expected(revised),
        done=done,
        why=why,
        model=session.model,
    )
    tx.journal(event, session_id=session.session_id, trace_id=session.trace_id)


def learn_session(tx: Tx, session: Session, status: object) -> None:
    """Make a session that is about to end as ``status`` history if it is done; other ends teach nothing.

    One that was resumed after its end is learned again with its sums: it stays one past task.
    """
    row = estimates.find(tx.connection, session.session_id)
    if row is None or status != "done":
        return
    kind = kind_of_session(session)
    if kind != row.kind:
        estimates.set_kind(tx, row.subject, kind)
    # A remade estimate has the number of waves before it in it, so it is not a first estimate of the task.
    is_first = kind == row.kind and not _was_remade(tx.connection, row)
    learn_row(
        tx,
        replace(row, kind=kind),
        Used(
            count_waves(tx.connection, session),
            session.input_tokens + session.output_tokens,
            session.cost_usd,
            measure_work(tx.connection, session.session_id),
        ),
        comparable=is_first,
        session_id=session.session_id,
        trace_id=session.trace_id,
    )


def learn_row(
    tx: Tx,
    row: EstimateRow,
    used: Used,
    *,
    comparable: bool = True,
    session_id: str = "",
    trace_id: str = "",
) -> None:
    """Make an estimated subject history, with what it took, and journal it."""
    if used.waves <= 0:
        return  # it ended before its first wave, which says nothing about its kind
    first = read_estimate(row.made_json)
    event = EstimateLearned(
        subject=row.subject,
        unit=row.unit,
        kind=row.kind,
        waves=used.waves,
        tokens=used.tokens,
        cost_usd=used.cost_usd,
        work_ms=used.work_ms or 0,
        expected=describe_expected(first) if comparable and first is not None else UNSET,
        again=True if row.learned_seq is not None else UNSET,
        model=row.model,
    )
    seq = tx.journal(event, session_id=session_id, trace_id=trace_id)
    estimates.learn(
        tx,
        row.subject,
        seq=seq,
        waves=used.waves,
        tokens=used.tokens,
        cost_usd=used.cost_usd,
        work_ms=used.work_ms or 0,
    )


def measure_work(connection: sqlite3.Connection, session_id: str) -> int:
    """Return the milliseconds that the session's models and programs took, as the journal has them.

    They were measured by a clock that never goes back. Phases and decisions contain waiting for the user,
    and are left out.
    """
    marks = ",".join("?" * len(_WORK))
    (work_ms,) = connection.execute(
        "SELECT coalesce(sum(latency_ms), 0) FROM journal WHERE session_id=? AND latency_ms>0"  # noqa: S608 - placeholders
        f" AND action IN ({marks})",
        (session_id, *map(str, _WORK)),
    ).fetchone()
    return int(work_ms)


def _find_reason(
    first: Estimate, now: Estimate, revised: Estimate, done: int, unit: str = "wave"
) -> str:
    """Return why the estimate changes, in words; empty where it does not change enough.

    ``unit`` is what is counted: the waves of a session, or an external agent's turns.
    """
    count = pluralize(done, unit)
    if done >= now.waves.high:
        return f"{count} done, and at most {now.waves.high:g} expected"
    if _differs(now.waves, revised.waves, MATERIAL):
        longer = [point for point in first.points if point.value > done]
        if not longer:
            return f"no past task of its kind took more than {count}"
        return f"it is not done after {count}, so only longer past tasks count"
    if _differs(now.tokens, revised.tokens, MATERIAL_TOKENS):
        return f"its {unit}s take more or fewer tokens than expected"
    return ""


def _differs(before: Span, after: Span, share: float) -> bool:
    return abs(after.likely - before.likely) >= max(1.0, share * before.likely)


def _begin_again(tx: Tx, row: EstimateRow, kind: str, first: Estimate, done: int) -> Estimate:
    """Estimate the rest of a session that became of another kind; what it took so far comes on top."""
    given = EstimateInput(row.size, first.usd_a_token)
    rest = estimate_kind(tx.connection, "session", kind, row.family, row.model, given)
    shifted = replace(
        rest,
        waves=Span(rest.waves.low + done, rest.waves.likely + done, rest.waves.high + done),
        points=tuple(Point(point.value + done, point.weight) for point in rest.points),
    )
    estimates.remake(tx, row.subject, kind, write_estimate(shifted))
    return shifted


def _was_remade(connection: sqlite3.Connection, row: EstimateRow) -> bool:
    first = connection.execute(
        "SELECT json_extract(detail_json, '$.kind') FROM journal WHERE session_id=? AND action=?"
        " ORDER BY seq LIMIT 1",
        (row.subject, str(Action.ESTIMATE_MADE)),
    ).fetchone()
    return first is not None and first[0] != row.kind


def count_waves(connection: sqlite3.Connection, session: Session) -> int:
    """Return the waves of a session, or the turns of an external agent's."""
    if not session.agent and not session.model.startswith(RUNNER_PREFIX):
        last = waves.find_latest(connection, session.session_id)
        return 0 if last is None else last.ordinal
    turns, runs = (
        connection.execute(
            "SELECT count(*) FROM journal WHERE session_id=? AND action=?",
            (session.session_id, str(action)),
        ).fetchone()[0]
        for action in (Action.RUNNER_TURN_STARTED, Action.RUNNER_STARTED)
    )
    return int(turns or runs)
