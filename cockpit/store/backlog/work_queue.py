"""The work queue: every open task with its score, its group and what it waits for, always current.

Every change of a task calls :func:`refresh` in the same transaction, so that taking the next batch
is one indexed read. The score is an integer with readable digits: the priority of the epic (P0: 3 …
P3: 0), or the highest of an open task that waits for this one, then two digits for how many open
tasks wait for it, then seven for its age, higher for older tasks. It does not depend on the clock.
Specified in ``docs/reference/backlog.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from msgspec import Struct, field

from cockpit.core.canonical_json import canonical_json, parse_json
from cockpit.store.backlog.backlog_ids import HIGHEST_NUMBER, id_number
from cockpit.store.backlog.batch_groups import claim_paths, group_tasks
from cockpit.store.backlog.epics_and_stories import PRIORITIES
from cockpit.store.backlog.queue_graph import DependencyGraph
from cockpit.store.db.transaction import Tx

RUNNING = ("in_progress", "review")
"""The statuses in which a task holds its claims against others."""
GROUPED = 500
"""Ready tasks, from the top, that are grouped; the others stay in group 0 until they rise."""

_PRIORITY_STEP = 1_000_000_000
_UNBLOCKS_STEP = 10_000_000
_READ_WHOLE_FROM = 300
_FEW = 2_000
"""Tasks that are counted one by one."""
_OVERTAKEN = (
    "(SELECT t.status IN ('done','archived') AND o.status NOT IN ('done','archived')"
    " FROM tasks t, tasks o WHERE t.task_id=task_dependencies.task_id"
    " AND o.task_id=task_dependencies.depends_on_task_id) * (dependency_type <> 'relates_to')"
)
"""In SQL: whether a task was finished before the task that it depends on."""


class Queued(Struct, frozen=True):
    """A row of the queue with its task's title, status and priority."""

    task_id: str
    number: int
    title: str
    status: str
    priority: str
    priority_score: int
    """Higher comes first; see the module's description."""
    unblocks: int
    """How many open tasks wait for this one."""
    batch_group: int
    """1: can start now, next to the tasks in progress; 0: not ready, or not grouped yet."""
    blocked_by: tuple[str, ...]
    """Ids of the open tasks that it waits for."""
    claims: tuple[str, ...]
    """Paths that it may change (:mod:`cockpit.store.backlog.batch_groups`)."""
    ready: bool

    @property
    def queue_priority(self) -> str:
        """The priority that places it: its own, or a higher one of a task that waits for it."""
        return PRIORITIES[len(PRIORITIES) - 1 - _rank(self.priority_score)]


class _Row(Struct, frozen=True):
    task_id: str
    number: int
    priority_score: int
    unblocks: int
    blocked_by: str
    claims: str
    ready: bool
    running: bool
    story_id: str
    epic_id: str


_SELECT = (
    "SELECT task_id, q.number, t.title, t.status, coalesce(e.priority, 'P2'), priority_score,"
    " unblocks, batch_group, blocked_by, claims, ready FROM work_queue q JOIN tasks t USING(task_id)"
    " LEFT JOIN stories s USING(story_id) LEFT JOIN epics e USING(epic_id)"
)


def compute_score(priority: str, unblocks: int, number: int) -> int:
    """Compute the score of a task with that priority and number that unblocks so many others."""
    rank = len(PRIORITIES) - 1 - PRIORITIES.index(priority)
    return rank * _PRIORITY_STEP + unblocks * _UNBLOCKS_STEP + (HIGHEST_NUMBER - number)


def find_lender(connection: sqlite3.Connection, row: Queued) -> str | None:
    """Find the task whose priority places this one; None if its own does.

    Follows the first of the waiting tasks with that rank, one indexed read a step.
    """
    priority = row.queue_priority
    if priority == row.priority:
        return None
    least, task_id = _rank(row.priority_score) * _PRIORITY_STEP, row.task_id
    while True:
        task_id, own = connection.execute(
            "SELECT q.task_id, coalesce(e.priority, 'P2') FROM task_dependencies d"
            " JOIN work_queue q ON q.task_id=d.task_id LEFT JOIN epics e ON e.epic_id=q.epic_id"
            " WHERE d.depends_on_task_id=? AND d.dependency_type <> 'relates_to'"
            " AND q.priority_score >= ? ORDER BY q.number LIMIT 1",
            (task_id, least),
        ).fetchone()
        if own == priority:
            return str(task_id)


def next_batch(connection: sqlite3.Connection, limit: int = 3) -> list[Queued]:
    """Read the tasks to start now, the best first: all can run together and with those in progress."""
    # The second term lets SQLite use its partial index.
    rows = connection.execute(
        f"{_SELECT} WHERE batch_group=1 AND batch_group>0"
        " ORDER BY priority_score DESC, q.number LIMIT ?",
        (limit,),
    )
    return [_read(row) for row in rows]


def count_ready(connection: sqlite3.Connection) -> int:
    """Count the tasks that are ready to start."""
    return _count(connection)[0]


def _count(connection: sqlite3.Connection) -> tuple[int, int]:
    """Count the tasks that are ready, and those that are not.

    The fewer ones are counted where one kind is few: SQLite counts a whole table by its pages.
    """
    (total,) = connection.execute("SELECT count(*) FROM work_queue").fetchone()
    waiting = 0
    for ready in (0, 1):
        (count,) = connection.execute(
            "SELECT count(*) FROM (SELECT 1 FROM work_queue WHERE ready=? LIMIT ?)",
            (ready, _FEW if ready == 0 else total),
        ).fetchone()
        waiting = count if ready == 0 else total - count
        if count < _FEW:
            break
    return total - waiting, waiting


def load_many(connection: sqlite3.Connection, task_ids: Sequence[str]) -> list[Queued]:
    """Read the rows of these tasks, in that order; tasks that are not in the queue are left out."""
    marks = ",".join("?" * len(task_ids))
    rows = connection.execute(f"{_SELECT} WHERE task_id IN ({marks})", tuple(task_ids))
    by_id = {queued.task_id: queued for queued in map(_read, rows)}
    return [by_id[task_id] for task_id in task_ids if task_id in by_id]


def select(
    connection: sqlite3.Connection,
    *,
    ready: bool | None = None,
    limit: int = 50,
    offset: int = 0,
) -> list[Queued]:
    """Read the queue in its order, ready tasks first, with everything that the order depends on."""
    where = "" if ready is None else f" WHERE ready={int(ready)}"
    rows = connection.execute(
        f"{_SELECT}{where} ORDER BY ready DESC, priority_score DESC, q.number LIMIT ? OFFSET ?",
        (limit, offset),
    )
    return [_read(row) for row in rows]


def select_running(connection: sqlite3.Connection) -> list[Queued]:
    """Read the tasks that are being worked on; they hold their claims against the next batch."""
    return [
        _read(row) for row in connection.execute(f"{_SELECT} WHERE running=1 ORDER BY q.number")
    ]


def refresh(tx: Tx, task_ids: Iterable[str], *, linked: bool = False) -> None:
    """Update the rows of these tasks and of every task that depends on their state.

    Call it in the transaction that changed their status, story, priority, dependencies (for both
    ends) or claims. ``linked``: dependencies changed, by which tasks may not run together even where no
    row differs.
    """
    changed = set(task_ids)
    graph = DependencyGraph(tx.connection)
    if len(changed) >= _READ_WHOLE_FROM:
        graph.read_whole()
    linked = _mark_overtaken(tx, changed) or linked
    touched = changed | graph.select_affected(changed)
    for task_id in changed:
        touched.update(graph.dependents(task_id))
    if len(touched) >= _READ_WHOLE_FROM:
        graph.read_whole()
    written = _write_rows(tx, touched, graph)
    if linked or written.any:
        _write_groups(tx, graph)


def rebuild(tx: Tx) -> None:
    """Rebuild the whole queue, as after an import that changed most of it."""
    graph = DependencyGraph(tx.connection)
    graph.read_whole()
    everything = [row[0] for row in tx.execute("SELECT task_id FROM tasks")]
    tx.execute("DELETE FROM work_queue")
    _mark_overtaken(tx, everything)
    _write_rows(tx, everything, graph)
    _write_groups(tx, graph)


class _Written(Struct):
    """What of the queue was written."""

    any: bool = False
    """Whether a row differed."""
    reached: set[str] = field(default_factory=set)
    """The open tasks whose rank may change, because it changed for one that waits for them."""


def _write_rows(tx: Tx, task_ids: Collection[str], graph: DependencyGraph) -> _Written:
    """Write the rows that differ."""
    # A task's rank includes those of the tasks that wait for it: these are written first.
    ordered = graph.sort_dependents_first(sorted(task_ids, key=id_number))
    written = _write_in_order(tx, ordered, graph)
    if beyond := written.reached - set(ordered):
        # A changed rank goes on past the tasks whose counts may change.
        further = graph.open_prerequisites(beyond)
        _write_in_order(tx, graph.sort_dependents_first(sorted(further, key=id_number)), graph)
    return written


def _write_in_order(tx: Tx, ordered: Sequence[str], graph: DependencyGraph) -> _Written:
    """Write the rows that differ, dependents first."""
    now, written = tx.now(), _Written()
    for task_id in ordered:
        before = tx.execute(
            "SELECT task_id, number, priority_score, unblocks, blocked_by, claims, ready, running,"
            " story_id, epic_id FROM work_queue WHERE task_id=?",
            (task_id,),
        ).fetchone()
        after = _row(tx.connection, task_id, graph)
        if after is None:
            if before is not None:
                tx.execute("DELETE FROM work_queue WHERE task_id=?", (task_id,))
                written.any = True
            continue
        values = (
            task_id,
            after.number,
            after.priority_score,
            after.unblocks,
            after.blocked_by,
            after.claims,
            int(after.ready),
            int(after.running),
            after.story_id,
            after.epic_id,
        )
        if before == values:
            continue
        written.any = True
        if before is None or _rank(before[2]) != _rank(after.priority_score):
            written.reached.update(
                other for other in graph.prerequisites(task_id) if not graph.is_settled(other)
            )
        tx.execute(
            "INSERT INTO work_queue(task_id, number, priority_score, unblocks, blocked_by, claims,"
            " ready, running, story_id, epic_id, computed_at) VALUES (?,?,?,?,?,?,?,?,?,?,?)"
            " ON CONFLICT(task_id) DO UPDATE"
            " SET priority_score=excluded.priority_score, unblocks=excluded.unblocks,"
            " blocked_by=excluded.blocked_by, claims=excluded.claims, ready=excluded.ready,"
            " running=excluded.running, story_id=excluded.story_id, epic_id=excluded.epic_id,"
            " computed_at=excluded.computed_at",
            (*values, now),
        )
    return written


def _row(connection: sqlite3.Connection, task_id: str, graph: DependencyGraph) -> _Row | None:
    """Compute a task's row; None for a task that is done or archived."""
    row = connection.execute(
        "SELECT t.number, t.status, coalesce(e.priority, 'P2'), coalesce(t.story_id, ''),"
        " coalesce(s.epic_id, ''), packages_json, files_json,"
        " json_extract(work_in_progress, '$.files_modified'), h.files_changed"
        " FROM tasks t LEFT JOIN stories s USING(story_id) LEFT JOIN epics e USING(epic_id)"
        " LEFT JOIN task_handoffs h USING(task_id)"
        " WHERE task_id=? AND t.status NOT IN ('done','archived')",
        (task_id,),
    ).fetchone()
    if row is None:
        return None
    number, status, priority, story_id, epic_id, *paths = row
    waits_for = [other for other in graph.prerequisites(task_id) if not graph.is_settled(other)]
    unblocks = graph.count_waiting(task_id)
    score = compute_score(priority, unblocks, number)
    inherited = _highest_rank(connection, task_id) - _rank(score)
    return _Row(
        task_id,
        number,
        score + max(0, inherited) * _PRIORITY_STEP,
        unblocks,
        canonical_json(sorted(waits_for, key=id_number)),
        canonical_json(claim_paths(*(parse_json(path) for path in paths if path))),
        status == "todo" and not waits_for,
        status in RUNNING,
        story_id,
        epic_id,
    )


def _rank(score: int) -> int:
    """Return the part of a score that is the priority: 3 for P0 … 0 for P3."""
    return score // _PRIORITY_STEP


def _highest_rank(connection: sqlite3.Connection, task_id: str) -> int:
    """Return the highest rank of the open tasks that wait directly for this one.

    Their rows must be current; their ranks include those of the tasks behind them.
    """
    (score,) = connection.execute(
        "SELECT coalesce(max(q.priority_score), 0) FROM task_dependencies d"
        " JOIN work_queue q ON q.task_id=d.task_id"
        " WHERE d.depends_on_task_id=? AND d.dependency_type <> 'relates_to'",
        (task_id,),
    ).fetchone()
    return _rank(score)


def _write_groups(tx: Tx, graph: DependencyGraph) -> None:
    """Group the top of the queue again; only rows whose group differs are written."""
    top = tx.execute(
        "SELECT task_id, claims, batch_group FROM work_queue WHERE ready=1"
        " ORDER BY priority_score DESC, number LIMIT ?",
        (GROUPED,),
    ).fetchall()
    occupied = tx.execute("SELECT task_id, claims FROM work_queue WHERE running=1").fetchall()
    ready = parse_claims([(task_id, claims) for task_id, claims, _ in top])
    busy = parse_claims(occupied)
    paths = indirect_dependencies(tx.connection, {task_id for task_id, _, _ in top}, busy, graph)
    groups = group_tasks(ready, busy, paths)
    current = {task_id: group for task_id, _, group in top}
    stale = tx.execute("SELECT task_id, batch_group FROM work_queue WHERE batch_group>0").fetchall()
    current.update(stale)
    differing = [
        (groups.get(task_id, 0), task_id)
        for task_id, group in current.items()
        if group != groups.get(task_id, 0)
    ]
    tx.connection.executemany("UPDATE work_queue SET batch_group=? WHERE task_id=?", differing)


def parse_claims(rows: Sequence[tuple[str, str]]) -> list[tuple[str, list[str]]]:
    """Decode the stored claims of (task id, claims as JSON) pairs."""
    # One document: several times faster than decoding them one by one.
    claims = parse_json(f"[{','.join(text for _, text in rows)}]")
    return [(task_id, paths) for (task_id, _), paths in zip(rows, claims, strict=True)]


def indirect_dependencies(
    connection: sqlite3.Connection,
    ready: set[str],
    busy: list[tuple[str, list[str]]],
    graph: DependencyGraph | None = None,
) -> dict[str, set[str]]:
    """Map ready tasks to the ready and running ones that they depend on through others.

    Direct prerequisites of a ready task are done, so the way leads through a task that was finished
    before one that it depends on.
    """
    result: dict[str, set[str]] = {}
    relevant = ready | {task_id for task_id, _ in busy}
    graph = graph or DependencyGraph(connection)
    for task_id, other in connection.execute(
        "SELECT task_id, depends_on_task_id FROM task_dependencies WHERE overtaken=1"
    ).fetchall():
        ahead = graph.all_prerequisites(other) & relevant
        if ahead:
            for behind in graph.all_dependents(task_id) & ready:
                result.setdefault(behind, set()).update(ahead)
    return result


def _mark_overtaken(tx: Tx, task_ids: Collection[str]) -> bool:
    """Update ``overtaken`` of the dependencies at both ends of these tasks; whether one differed."""
    differed = False
    for task_id in task_ids:
        changed = tx.execute(
            f"UPDATE task_dependencies SET overtaken={_OVERTAKEN}"  # noqa: S608
            f" WHERE (task_id=:id OR depends_on_task_id=:id) AND overtaken <> {_OVERTAKEN}",
            {"id": task_id},
        )
        differed = differed or changed.rowcount > 0
    return differed


def _read(row: tuple[Any, ...]) -> Queued:
    columns = list(row)
    blocked_by, claims, ready = columns[-3:]
    columns[-3:] = (tuple(parse_json(blocked_by)), tuple(parse_json(claims)), bool(ready))
    return Queued(*columns)
