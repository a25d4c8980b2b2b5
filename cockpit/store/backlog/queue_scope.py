"""The part of the work queue that a chain works on: an epic, a story, or everything.

A chain's next batch is chosen among its own tasks; ready tasks outside its scope do not hold them
back. Specified in ``docs/reference/chains.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection

from msgspec import Struct

from cockpit.store.backlog import work_queue
from cockpit.store.backlog.batch_groups import ClaimMap
from cockpit.store.backlog.work_queue import GROUPED, Queued

_FIRST = 40


class Scope(Struct, frozen=True):
    """What a chain works on."""

    kind: str = "all"
    """``epic``, ``story`` or ``all``."""
    scope_id: str = ""
    """``E-1`` or ``S-1``; empty for ``all``."""


def next_batch(
    connection: sqlite3.Connection, scope: Scope, limit: int, held: Collection[str] = ()
) -> list[Queued]:
    """Choose tasks of the scope to start now, the best first.

    All of them can run together, and with the tasks in progress. ``held`` are tasks that are about
    to be started elsewhere: neither they nor tasks that conflict with them are chosen.
    """
    marks = ",".join("?" * len(held))
    occupied = connection.execute(
        "SELECT task_id, claims FROM work_queue WHERE running=1 UNION"  # noqa: S608 - marks
        f" SELECT task_id, claims FROM work_queue WHERE task_id IN ({marks})",
        tuple(held),
    ).fetchall()
    busy = work_queue.parse_claims(occupied)
    claim_map = ClaimMap()
    for _, claims in busy:
        claim_map.add(claims, 1)
    concurrent = {task_id for task_id, _ in busy}
    chosen: list[str] = []
    # Usually the first few suffice; reading the others costs more than all the rest.
    for offset, most in ((0, _FIRST), (_FIRST, GROUPED - _FIRST)):
        rows = _ready(connection, scope, most, offset)
        ready = work_queue.parse_claims([row for row in rows if row[0] not in held])
        linked = work_queue.indirect_dependencies(
            connection, {task_id for task_id, _ in ready}, busy
        )
        for task_id, claims in ready:
            if len(chosen) >= limit:
                break
            if claim_map.conflicting_groups(claims) or _is_linked(task_id, concurrent, linked):
                continue
            claim_map.add(claims, 1)
            concurrent.add(task_id)
            busy.append((task_id, claims))
            chosen.append(task_id)
        if len(chosen) >= limit or len(rows) < most:
            break
    return work_queue.load_many(connection, chosen)


def count_ready(connection: sqlite3.Connection, scope: Scope) -> int:
    """Count the tasks of the scope that are ready to start."""
    where, values = _where(scope)
    (count,) = connection.execute(
        f"SELECT count(*) FROM work_queue WHERE ready=1{where}",  # noqa: S608 - fixed columns
        values,
    ).fetchone()
    return int(count)


def select_blocking(connection: sqlite3.Connection, scope: Scope) -> list[str]:
    """Read the ids of running tasks whose claims keep ready tasks of the scope waiting."""
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


def _is_linked(task_id: str, concurrent: set[str], linked: dict[str, set[str]]) -> bool:
    """Tell whether the task and one in ``concurrent`` depend on each other through others."""
    return bool(linked.get(task_id, set()) & concurrent) or any(
        task_id in linked.get(other, ()) for other in concurrent
    )
