"""What was decided about requests of each shape: the evidence that rules are offered on.

A row is written in the transaction of its decision, so a crash leaves both or neither. Specified in
``docs/reference/trust.md``, learning.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from msgspec import Struct

from cockpit.store.db.transaction import Tx
from cockpit.store.trust.shape import Shape, read_shape

NO_SHAPE = ""
"""The digest of what has no shape: it is counted for the state of the inner loops, and never learned."""
MOST_DECISIONS = 200
"""Newest decisions of one shape that are weighed."""
MOST_SHAPES = 200
"""Shapes that are weighed for offers at once, those decided last first."""

_SELECT = (
    "SELECT shape_json, proposal_id, literal, session_id, wave_id, task_type, inner_loop, verdict,"
    " decided_by, risk, decided_at FROM trust_decisions"
)


class TrustDecision(Struct, frozen=True):
    """One decision about one part of a request: an item to read, or a whole action."""

    shape: Shape | None
    proposal_id: str
    literal: str
    """Digest of the part as it was asked for: the same part asked twice has the same one."""
    session_id: str
    wave_id: str
    task_type: str
    inner_loop: str
    verdict: str
    """``approved``, or how the user pushed back: ``narrowed``, ``rejected``, ``discussed``, ``edited``."""
    decided_by: str
    """``person``; ``card``: the user, on a short card; ``rule``: a rule let it pass."""
    risk: str
    decided_at: str

    @property
    def is_pushback(self) -> bool:
        return self.verdict != "approved"


def record(tx: Tx, decisions: Iterable[TrustDecision], *, oldest: str) -> None:
    """Store decisions. Rows that were decided before ``oldest`` no longer count, and some are deleted.

    Of one proposal and shape a pushback stays, whatever else was decided about it.
    """
    for each in decisions:
        shape_digest = NO_SHAPE if each.shape is None else each.shape.digest
        tx.execute(
            "INSERT INTO trust_decisions(shape_digest, proposal_id, shape_json, literal, session_id,"
            " wave_id, task_type, inner_loop, verdict, decided_by, risk, decided_at, number)"
            " VALUES (?,?,?,?,?,?,?,?,?,?,?,?, (SELECT coalesce(max(number), 0) + 1 FROM trust_decisions))"
            " ON CONFLICT(shape_digest, proposal_id) DO UPDATE"
            " SET verdict=excluded.verdict, literal=excluded.literal"
            " WHERE trust_decisions.verdict='approved' AND excluded.verdict<>'approved'",
            (
                shape_digest,
                each.proposal_id,
                "" if each.shape is None else each.shape.as_json(),
                each.literal,
                each.session_id,
                each.wave_id,
                each.task_type,
                each.inner_loop,
                each.verdict,
                each.decided_by,
                each.risk,
                each.decided_at,
            ),
        )
    # A few with each decision: the table stays as large as what counts.
    tx.execute(
        "DELETE FROM trust_decisions WHERE (shape_digest, proposal_id) IN (SELECT shape_digest,"
        " proposal_id FROM trust_decisions ORDER BY number LIMIT 20) AND decided_at<?",
        (oldest,),
    )


def select_of_shape(connection: sqlite3.Connection, shape_digest: str) -> list[TrustDecision]:
    """Read the newest decisions about a shape, oldest first."""
    rows = connection.execute(
        f"{_SELECT} WHERE shape_digest=? ORDER BY number DESC LIMIT ?",
        (shape_digest, MOST_DECISIONS),
    ).fetchall()
    return [_read(row) for row in reversed(rows)]


def select_frequent(connection: sqlite3.Connection, least: int, since: str) -> list[str]:
    """Read the digests of shapes that were decided at least ``least`` times since ``since``."""
    rows = connection.execute(
        "SELECT shape_digest FROM trust_decisions WHERE decided_at>=? AND shape_digest<>''"
        " AND decided_by IN ('person','card') AND verdict='approved'"
        " GROUP BY shape_digest HAVING count(*)>=? ORDER BY max(number) DESC LIMIT ?",
        (since, least, MOST_SHAPES),
    )
    return [str(row[0]) for row in rows]


def select_task_types(connection: sqlite3.Connection, since: str) -> list[str]:
    """Read the task types that something was decided in since ``since``."""
    rows = connection.execute(
        "SELECT DISTINCT task_type FROM trust_decisions WHERE decided_at>=? ORDER BY task_type LIMIT 200",
        (since,),
    )
    return [str(row[0]) for row in rows]


def select_of_type(
    connection: sqlite3.Connection, task_type: str, since: str
) -> list[TrustDecision]:
    """Read the newest decisions in sessions of a task type, oldest first."""
    rows = connection.execute(
        f"{_SELECT} WHERE task_type=? AND decided_at>=? ORDER BY number DESC LIMIT ?",
        (task_type, since, 2 * MOST_DECISIONS),
    ).fetchall()
    return [_read(row) for row in reversed(rows)]


def _read(row: tuple[str, ...]) -> TrustDecision:
    shape = read_shape(row[0]) if row[0] else None
    return TrustDecision(shape, *row[1:])
