"""The table of estimates: one row for a session, or for a run of a task.

A row becomes history (``learned_seq``) when what it estimates is done. Specified in
``docs/reference/planner.md``.
"""

from __future__ import annotations

import sqlite3
from typing import Any, Literal

from msgspec import Struct

from cockpit.store.db.transaction import Tx

Unit = Literal["session", "task"]
Family = Literal["model", "offline", "script", "agent"]

_COLUMNS = (
    "subject, unit, kind, family, model, made_json, now_json, learned_seq, waves, tokens, cost_usd,"
    " work_ms"
)
_SELECT = f"SELECT {_COLUMNS} FROM estimates"  # noqa: S608 - fixed columns


class EstimateRow(Struct, frozen=True):
    """One row of ``estimates``. Of one that is not learned, waves, tokens, cost and work are empty."""

    subject: str
    unit: str
    kind: str
    family: str
    """``model``, ``offline``, ``script`` or ``agent``: what it can be compared with at all."""
    model: str
    made_json: str
    now_json: str
    learned_seq: int | None
    waves: int
    tokens: int
    cost_usd: float | None
    work_ms: int | None


def create(
    tx: Tx,
    *,
    subject: str,
    unit: Unit,
    kind: str,
    family: str,
    model: str,
    made_json: str,
) -> None:
    """Store the first estimate of a subject; the caller journals it."""
    tx.execute(
        "INSERT INTO estimates(subject, unit, kind, family, model, made_json, now_json)"
        " VALUES (?,?,?,?,?,?,?)",
        (subject, unit, kind, family, model, made_json, made_json),
    )


def set_now(tx: Tx, subject: str, now_json: str) -> None:
    """Store the revised estimate."""
    tx.execute("UPDATE estimates SET now_json=? WHERE subject=?", (now_json, subject))


def set_kind(tx: Tx, subject: str, kind: str) -> None:
    """Compare the subject with others from now on: its session's task type changed."""
    tx.execute("UPDATE estimates SET kind=? WHERE subject=?", (kind, subject))


def learn(
    tx: Tx,
    subject: str,
    *,
    seq: int,
    waves: int,
    tokens: int,
    cost_usd: float | None,
    work_ms: int,
) -> None:
    """Make the subject history, with what it took; a second time replaces the first."""
    tx.execute(
        "UPDATE estimates SET learned_seq=?, waves=?, tokens=?, cost_usd=?, work_ms=? WHERE subject=?",
        (seq, waves, tokens, cost_usd, work_ms, subject),
    )


def find(connection: sqlite3.Connection, subject: str) -> EstimateRow | None:
    """Read the estimate of a session or a run of a task; None where there is none."""
    row = connection.execute(f"{_SELECT} WHERE subject=?", (subject,)).fetchone()
    return None if row is None else _read(row)


def select_history(
    connection: sqlite3.Connection, unit: Unit, kind: str, family: str, limit: int
) -> list[EstimateRow]:
    """Read what was learned of a kind, the newest first."""
    rows = connection.execute(
        f"{_SELECT} INDEXED BY idx_estimates_history WHERE unit=? AND kind=? AND family=?"
        " AND learned_seq IS NOT NULL ORDER BY learned_seq DESC LIMIT ?",
        (unit, kind, family, limit),
    )
    return [_read(row) for row in rows]


def _read(row: tuple[Any, ...]) -> EstimateRow:
    return EstimateRow(*row)
