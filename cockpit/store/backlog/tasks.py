"""Tasks: the rows of the backlog that workers implement.

Specified in ``docs/reference/backlog.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from cockpit.core.canonical_json import canonical_json, parse_json
from cockpit.core.secrets import mask, mask_value
from cockpit.store.backlog.backlog_ids import TASK, format_id, next_number, read_id, unknown_id
from cockpit.store.backlog.epics_and_stories import DEFAULT_PRIORITY
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.backlog import TaskState
from cockpit.store.journal.details.detail import record_row

_WORDS = (
    "title",
    "description",
    "acceptance_criteria",
    "context_summary",
    "handoff_notes",
    "blocker",
)
"""Free text: secrets in it are masked before it is stored."""


USER = "person"
"""The source of a task that the user has entered by a tool; of one entered on the board it is empty."""


class Task(Struct, frozen=True):
    """One row of ``tasks``, with the epic of its story and that epic's priority."""

    task_id: str
    number: int
    story_id: str | None
    epic_id: str | None
    """The epic of its story; None for a task without a story or a story without an epic."""
    priority: str
    """The epic's priority, ``P2`` without one."""
    title: str
    description: str
    acceptance_criteria: str
    task_type: str
    status: str
    estimate_hours: float | None
    progress_percent: int
    context_summary: str
    handoff_notes: str
    blocker: str
    needs_rework: bool
    source: str
    """Who or which import wrote the task."""
    packages: tuple[str, ...]
    """Packages that the task declares it will touch, as paths."""
    files: tuple[str, ...]
    """Files that the task declares it will touch."""
    wip: Mapping[str, Any] | None
    """The work in progress (:mod:`cockpit.store.backlog.wip`); None until some is recorded."""
    wip_updated_at: str | None
    session_id: str
    created_at: str
    updated_at: str
    started_at: str | None
    done_at: str | None


_FROM = " FROM tasks t LEFT JOIN stories s USING(story_id) LEFT JOIN epics e USING(epic_id)"
_SELECT = (
    "SELECT task_id, t.number, t.story_id, s.epic_id, coalesce(e.priority, 'P2'),"
    " t.title, t.description, acceptance_criteria, task_type, t.status,"
    " estimate_hours, progress_percent, context_summary, handoff_notes, blocker, needs_rework,"
    " t.source, packages_json, files_json, work_in_progress, wip_updated_at, session_id,"
    " t.created_at, t.updated_at, started_at, t.done_at"
    f"{_FROM}"
)
PLAIN_FIELDS = (
    "title",
    "description",
    "acceptance_criteria",
    "task_type",
    "status",
    "estimate_hours",
    "progress_percent",
    "context_summary",
    "handoff_notes",
    "blocker",
    "needs_rework",
    "source",
    "session_id",
)
"""The columns that exports carry as they are: all but ids, lists and times."""
_KEPT = ("story_id", *PLAIN_FIELDS, "updated_at", "started_at", "done_at")
"""The columns that :func:`change` writes besides the two lists."""


def load(connection: sqlite3.Connection, task_id: str) -> Task:
    """Read the task of that id, written as users type it.

    Raises :class:`~cockpit.core.errors.NotFound`.
    """
    full_id = read_id(TASK, task_id)
    row = connection.execute(f"{_SELECT} WHERE task_id=?", (full_id,)).fetchone()
    if row is None:
        raise unknown_id(TASK, full_id)
    return _read(row)


def load_many(connection: sqlite3.Connection, task_ids: Sequence[str]) -> list[Task]:
    """Read the tasks of these ids, in that order; unknown ids are left out."""
    marks = ",".join("?" * len(task_ids))
    rows = connection.execute(f"{_SELECT} WHERE task_id IN ({marks})", tuple(task_ids))
    by_id = {row[0]: _read(row) for row in rows}
    return [by_id[task_id] for task_id in task_ids if task_id in by_id]


def select(
    connection: sqlite3.Connection, *, limit: int = 50, offset: int = 0, **terms: Any
) -> list[Task]:
    """Read tasks, the oldest first.

    ``terms`` are those of :func:`count`. Archived tasks are left out unless ``status`` asks for
    them.
    """
    where, values = _where(**terms)
    rows = connection.execute(
        f"{_SELECT}{where} ORDER BY t.number LIMIT ? OFFSET ?", (*values, limit, offset)
    )
    return [_read(row) for row in rows]


def find_by_number(
    connection: sqlite3.Connection, digits: str, limit: int
) -> list[tuple[str, str]]:
    """Read id and title of tasks whose number begins with ``digits``, the exact one first.

    Tasks that are neither done nor archived come before done ones, newer before older.
    """
    if digits and not (digits.isascii() and digits.isdigit()):
        return []
    rows = connection.execute(
        "SELECT task_id, title FROM tasks WHERE status <> 'archived' AND substr(number, 1, ?) = ?"
        " ORDER BY CAST(number AS TEXT) <> ?, status = 'done', number DESC LIMIT ?",
        (len(digits), digits, digits, limit),
    )
    return [(task_id, title) for task_id, title in rows]


def count(connection: sqlite3.Connection, **terms: Any) -> int:
    """Count tasks by the terms given.

    Terms are ``status``, ``priority``, ``story_status``, ``epic_status``, ``story_id`` and
    ``epic_id``; ``with_wip`` counts only tasks with work in progress.
    """
    where, values = _where(**terms)
    (number,) = connection.execute(f"SELECT count(*){_FROM}{where}", values).fetchone()
    return int(number)


def _where(
    *,
    status: str | None = None,
    priority: str | None = None,
    story_status: str | None = None,
    epic_status: str | None = None,
    story_id: str | None = None,
    epic_id: str | None = None,
    with_wip: bool = False,
) -> tuple[str, tuple[str, ...]]:
    columns = {
        "t.status": status,
        "coalesce(e.priority, 'P2')": priority,
        "s.status": story_status,
        "e.status": epic_status,
        "t.story_id": story_id,
        "s.epic_id": epic_id,
    }
    equal = {column: value for column, value in columns.items() if value is not None}
    terms = [f"{column}=?" for column in equal]
    if status is None:
        terms.append("t.status <> 'archived'")
    if with_wip:
        terms.append("work_in_progress IS NOT NULL")
    return f" WHERE {' AND '.join(terms)}" if terms else "", tuple(equal.values())


def insert(tx: Tx, draft: Task, *, number: int | None = None, by: str) -> Task:
    """Store ``draft`` and journal it; returns the stored task.

    The id and the times are set here. ``number`` is for an import that keeps ids; otherwise the
    next free one is used.
    """
    own = number or next_number(tx, TASK)
    now = tx.now()
    task = replace(
        draft, **_masked(draft), task_id=format_id(TASK, own), number=own, created_at=now
    )
    task = replace(task, updated_at=now)
    columns = ("task_id", "number", "created_at", *_KEPT, "packages_json", "files_json")
    marks = ",".join("?" * len(columns))
    tx.execute(
        f"INSERT INTO tasks({','.join(columns)}) VALUES ({marks})",  # noqa: S608
        (task.task_id, own, now, *_values(task)),
    )
    stored = load(tx.connection, task.task_id)
    journal_change(tx, stored, by=by, session_id=task.session_id)
    return stored


def change(tx: Tx, task: Task, changes: Mapping[str, Any]) -> Task:
    """Write ``task`` with ``changes`` applied; the caller journals what the change means."""
    changed = replace(task, **changes)
    changed = replace(changed, **_masked(changed), updated_at=tx.now())
    columns = (*_KEPT, "packages_json", "files_json")
    tx.execute(
        f"UPDATE tasks SET {', '.join(f'{name}=?' for name in columns)} WHERE task_id=?",  # noqa: S608
        (*_values(changed), changed.task_id),
    )
    return load(tx.connection, changed.task_id)


def journal_change(tx: Tx, task: Task, *, by: str, session_id: str = "") -> None:
    """Journal ``task.changed`` with the task as it is now."""
    tx.journal(record_row(TaskState, task, type=task.task_type), actor=by, session_id=session_id)


def new_draft(title: str) -> Task:
    """Make a task for :func:`insert` with defaults for everything but the title."""
    return Task(
        task_id="",
        number=0,
        story_id=None,
        epic_id=None,
        priority=DEFAULT_PRIORITY,
        title=title,
        description="",
        acceptance_criteria="",
        task_type="feature",
        status="todo",
        estimate_hours=None,
        progress_percent=0,
        context_summary="",
        handoff_notes="",
        blocker="",
        needs_rework=False,
        source="",
        packages=(),
        files=(),
        wip=None,
        wip_updated_at=None,
        session_id="",
        created_at="",
        updated_at="",
        started_at=None,
        done_at=None,
    )


def _masked(task: Task) -> dict[str, Any]:
    return {name: mask(getattr(task, name)) for name in _WORDS}


def _values(task: Task) -> tuple[Any, ...]:
    lists = (mask_value(list(task.packages)), mask_value(list(task.files)))
    return (*(getattr(task, name) for name in _KEPT), *(canonical_json(paths) for paths in lists))


def _read(row: tuple[Any, ...]) -> Task:
    columns = list(row)
    needs_rework, source, packages, files, wip = columns[15:20]
    columns[15:20] = (
        bool(needs_rework),
        source,
        tuple(parse_json(packages)),
        tuple(parse_json(files)),
        None if wip is None else parse_json(wip),
    )
    return Task(*columns)
