"""The part of the queue that a chain works on: an epic, a story, or everything.

Its next batch is chosen among its own tasks alone: one outside that nobody is about to begin keeps
none of them waiting. Source: design of work, "Chains" (``--epic``, ``--story``, ``--all``).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from dataclasses import dataclass

from cockpit.store.backlog import work_queue
from cockpit.store.backlog.path_conflicts import ClaimMap
from cockpit.store.backlog.work_queue import GROUPED, Queued

_FIRST = 40


@dataclass(frozen=True, slots=True)
class Scope:
    """``kind`` is ``epic``, ``story`` or ``all``; ``scope_id`` is then ``E-1``, ``S-1`` or empty."""

    kind: str = "all"
    scope_id: str = ""


def next_batch(
    connection: sqlite3.Connection, scope: Scope, limit: int, held: Collection[str] = ()
) -> list[Queued]:
    """The tasks of the scope to begin now, the best first: all can run at once, beside what runs.

    ``held`` are tasks that somebody is about to begin: they are not chosen, and nothing that would
    meet them is.
    """
    marks = ",".join("?" * len(held))
    at_work = connection.execute(
        "SELECT task_id, claims FROM work_queue WHERE running=1 UNION"  # noqa: S608 - marks
        f" SELECT task_id, claims FROM work_queue WHERE task_id IN ({marks})",
        tuple(held),
    ).fetchall()
    busy = work_queue.parse_claims(at_work)
    claim_map = ClaimMap()
    for _, claims in busy:
        claim_map.add(claims, 1)
    beside = {task_id for task_id, _ in busy}
    chosen: list[str] = []
    # Mostly the first few will do; reading the others costs more than all the rest.
    for offset, most in ((0, _FIRST), (_FIRST, GROUPED - _FIRST)):
        rows = _ready(connection, scope, most, offset)
        ready = work_queue.parse_claims([row for row in rows if row[0] not in held])
        against = work_queue.indirect_dependencies(
            connection, {task_id for task_id, _ in ready}, busy
        )
        for task_id, claims in ready:
            if len(chosen) >= limit:
                break
            if claim_map.conflicting_groups(claims) or _apart(task_id, beside, against):
                continue
            claim_map.add(claims, 1)
            beside.add(task_id)
            busy.append((task_id, claims))
            chosen.append(task_id)
        if len(chosen) >= limit or len(rows) < most:
            break
    return work_queue.load_many(connection, chosen)


def count_ready(connection: sqlite3.Connection, scope: Scope) -> int:
    """How many tasks of the scope could be begun, were there enough hands."""
    where, values = _where(scope)
    (count,) = connection.execute(
        f"SELECT count(*) FROM work_queue WHERE ready=1{where}",  # noqa: S608 - fixed columns
        values,
    ).fetchone()
    return int(count)


def select_blocking(connection: sqlite3.Connection, scope: Scope) -> list[str]:
    """What runs and keeps tasks of the scope that are ready from being begun."""
    rows = _ready(connection, scope, GROUPED, 0)
    claim_map = ClaimMap()
    for _, claims in work_queue.parse_claims(rows):
        claim_map.add(claims, 1)
    return [
        task.task_id
        for task in work_queue.select_running(connection)
        if claim_map.conflicting_groups(task.claims)
    ]


def _ready(
    connection: sqlite3.Connection, scope: Scope, limit: int, offset: int
) -> list[tuple[str, str]]:
    where, values = _where(scope)
    return connection.execute(
        f"SELECT task_id, claims FROM work_queue WHERE ready=1{where}"  # noqa: S608 - fixed columns
        " ORDER BY priority_score DESC, number LIMIT ? OFFSET ?",
        (*values, limit, offset),
    ).fetchall()


def _where(scope: Scope) -> tuple[str, tuple[str, ...]]:
    if scope.kind == "all":
        return "", ()
    return f" AND {scope.kind}_id=?", (scope.scope_id,)


def _apart(task_id: str, beside: set[str], against: dict[str, set[str]]) -> bool:
    """Whether the task depends through others on one of ``beside``, or one of these on it."""
    return bool(against.get(task_id, set()) & beside) or any(
        task_id in against.get(other, ()) for other in beside
    )
