"""Correcting a session's estimate once it is passed, and learning from the session when it is done.

Only sessions that end as ``done`` teach: one that was stopped, failed, blocked or cut off at a limit says
nothing about what its task takes. See ``docs/reference/planner.md``, correcting and learning.
"""

from __future__ import annotations

import sqlite3

from msgspec import UNSET
from msgspec.structs import replace

from cockpit.core.text import pluralize
from cockpit.decide.planner.estimate import Used, correct
from cockpit.loop.planner.estimate_session import kind_of_session
from cockpit.store.db.transaction import Tx
from cockpit.store.estimates import estimates
from cockpit.store.estimates.estimates import EstimateRow
from cockpit.store.journal.details.detail import decode_detail, detail_json
from cockpit.store.journal.details.estimates import EstimateLearned, EstimateMade, Expected
from cockpit.store.journal.event_types import Action
from cockpit.store.sessions import waves
from cockpit.store.sessions.sessions import RUNNER_PREFIX, Session

_WORK = (Action.MODEL_COMPLETED, Action.ACTION_CONFIRMED, Action.ACTION_FAILED)
"""Events whose latency is the time of a model or a program."""


def correct_estimate(tx: Tx, session: Session, done: int) -> None:
    """Correct the estimate of a session that is not done after ``done`` waves, once it is passed."""
    row = estimates.find(tx.connection, session.session_id)
    if row is None or row.learned_seq is not None or row.now_json != row.made_json:
        return
    first = decode_detail(Expected, row.made_json)
    if done < first.waves.high:
        return
    tokens = session.input_tokens + session.output_tokens
    work_ms = measure_work(tx.connection, session.session_id)
    expected = correct(first, Used(done, tokens, session.cost_usd, work_ms))
    estimates.set_now(tx, row.subject, detail_json(expected))
    event = EstimateMade(
        subject=row.subject,
        unit=row.unit,
        kind=row.kind,
        expected=expected,
        done=done,
        why=f"{pluralize(done, 'wave')} done, and at most {first.waves.high:g} expected",
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
    used = Used(
        count_waves(tx.connection, session),
        session.input_tokens + session.output_tokens,
        session.cost_usd,
        measure_work(tx.connection, session.session_id),
    )
    learn_row(tx, replace(row, kind=kind), used, comparable=kind == row.kind, session=session)


def learn_row(
    tx: Tx,
    row: EstimateRow,
    used: Used,
    *,
    comparable: bool = True,
    session: Session | None = None,
) -> None:
    """Make an estimated subject history, with what it took, and journal it.

    Not ``comparable``: the estimate was made for another kind of task.
    """
    if used.waves <= 0:
        return  # it ended before its first wave, which says nothing about its kind
    event = EstimateLearned(
        subject=row.subject,
        unit=row.unit,
        kind=row.kind,
        waves=used.waves,
        tokens=used.tokens,
        cost_usd=used.cost_usd,
        work_ms=used.work_ms,
        expected=decode_detail(Expected, row.made_json) if comparable else UNSET,
        again=True if row.learned_seq is not None else UNSET,
        model=row.model,
    )
    seq = tx.journal(
        event,
        session_id=session.session_id if session else "",
        trace_id=session.trace_id if session else "",
    )
    estimates.learn(
        tx,
        row.subject,
        seq=seq,
        waves=used.waves,
        tokens=used.tokens,
        cost_usd=used.cost_usd,
        work_ms=used.work_ms,
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


def count_waves(connection: sqlite3.Connection, session: Session) -> int:
    """Return the waves of a session, or the turns of an external agent's."""
    if not session.agent and not session.model.startswith(RUNNER_PREFIX):
        last = waves.find_latest(connection, session.session_id)
        return 0 if last is None else last.ordinal
    turns, runs = (
        connection.execute(
            "SELECT count(*) FROM journal WHERE session_id=? AND action=?"
            " AND coalesce(json_extract(detail_json, '$.end'), '')=''",
            (session.session_id, str(action)),
        ).fetchone()[0]
        for action in (Action.RUNNER_TURN, Action.RUNNER_STARTED)
    )
    return int(turns or runs)
