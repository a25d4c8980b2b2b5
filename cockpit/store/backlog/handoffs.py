"""Handoffs: how a task ended, in a few sentences, with the whole output behind them.

A coordinator receives status and summary only. The details stay here until the story is complete,
the summary until the epic is. Handoffs of failed and blocked tasks are kept. Specified in
``docs/reference/backlog.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from cockpit.core.canonical_json import canonical_json, parse_json
from cockpit.core.errors import CockpitError, NotFound
from cockpit.core.secrets import mask, mask_value
from cockpit.store.backlog import dependencies, work_queue
from cockpit.store.backlog.backlog_ids import TASK, read_id, unknown_id
from cockpit.store.journal.details.backlog import HandoffArchived, HandoffCompacted, HandoffSet
from cockpit.store.journal.details.detail import decode_detail
from cockpit.store.journal.event_types import Action

if TYPE_CHECKING:
    from cockpit.store.db.transaction import Tx

STATUSES = ("PASS", "FAIL", "BLOCKED")
MOST_SUMMARY = 4_000
"""Characters: two or three sentences, with room for long names."""
MOST_DETAILS = 1_000_000
MOST_FILES = 5_000
_MOST_DECISIONS = 50
"""Decisions of a task, the newest, that the journal keeps when its handoff is compacted."""

_MOST_BEFORE = 50
"""Tasks before a task whose handoffs are read."""

# Handoffs of blocked and failed tasks stay: they explain why.
_DECAYS = (
    "SELECT h.task_id, t.work_in_progress, h.status, h.summary, h.files_changed, h.created_at,"
    " h.compacted_at, t.story_id FROM task_handoffs h JOIN tasks t USING(task_id)"
    " LEFT JOIN stories s USING(story_id) WHERE h.status='PASS' AND t.status<>'blocked'"
)


class HandoffInvalid(CockpitError):
    """The handoff is not valid; nothing was stored."""

    code = "usage"


class Handoff(Struct, frozen=True):
    """One row of ``task_handoffs``, or what the journal keeps of an archived one."""

    task_id: str
    status: str
    summary: str
    files_changed: tuple[str, ...]
    full_details: str | None
    """None once the handoff was compacted or archived."""
    created_at: str
    compacted_at: str | None = None
    archived_at: str | None = None
    """When it was archived; None while the row is in the table."""

    def brief(self) -> dict[str, str]:
        """Return all that a coordinator receives: status and summary."""
        return {"status": self.status, "summary": self.summary}

    def body(self, *, details: bool = False) -> dict[str, Any]:
        """Return it as commands and tools print it; ``details`` adds the whole output."""
        body: dict[str, Any] = {
            "task_id": self.task_id,
            "status": self.status,
            "summary": self.summary,
            "files_changed": list(self.files_changed),
            "created_at": self.created_at,
            "compacted_at": self.compacted_at,
            "archived_at": self.archived_at,
        }
        return {**body, "full_details": self.full_details} if details else body


_SELECT = (
    "SELECT h.task_id, h.status, h.summary, h.files_changed, h.full_details, h.created_at,"
    " h.compacted_at FROM task_handoffs h"
)


def set_handoff(
    tx: Tx,
    task_id: str,
    status: str,
    summary: str,
    files_changed: Sequence[str] = (),
    full_details: str | None = None,
    *,
    by: str,
    session_id: str = "",
) -> Handoff:
    """Store how the task ended, replacing an earlier handoff, and journal ``handoff.set``.

    Secrets are masked. Raises :class:`HandoffInvalid`, and :class:`NotFound` for an unknown task.
    """
    task_id = read_id(TASK, task_id)
    if tx.execute("SELECT 1 FROM tasks WHERE task_id=?", (task_id,)).fetchone() is None:
        raise unknown_id(TASK, task_id)
    _check(status, summary, files_changed, full_details)
    files = sorted({str(path) for path in mask_value(list(files_changed))})
    safe_summary = mask(summary.strip())
    tx.execute(
        "INSERT INTO task_handoffs(task_id, status, summary, files_changed, full_details, created_at)"
        " VALUES (?,?,?,?,?,?) ON CONFLICT(task_id) DO UPDATE SET status=excluded.status,"
        " summary=excluded.summary, files_changed=excluded.files_changed,"
        " full_details=excluded.full_details, created_at=excluded.created_at, compacted_at=NULL",
        (
            task_id,
            status,
            safe_summary,
            canonical_json(files),
            None if full_details is None else mask(full_details),
            tx.now(),
        ),
    )
    tx.journal(
        HandoffSet(
            task_id=task_id,
            status=status,
            summary=safe_summary,
            files=tuple(files),
            details=bool(full_details),
        ),
        actor=by,
        session_id=session_id,
    )
    # Files that a task changed are closed to tasks that run at the same time.
    work_queue.refresh(tx, [task_id])
    return load(tx.connection, task_id)


def load(connection: sqlite3.Connection, task_id: str) -> Handoff:
    """Read the task's handoff, from the journal if it was archived.

    Raises :class:`NotFound` for a task without one.
    """
    handoff = find(connection, task_id)
    if handoff is not None:
        return handoff
    task_id = read_id(TASK, task_id)
    if connection.execute("SELECT 1 FROM tasks WHERE task_id=?", (task_id,)).fetchone() is None:
        raise unknown_id(TASK, task_id)
    raise NotFound(
        f"{task_id} has no handoff yet; `cockpit tasks handoff {task_id} PASS 'what was done'` stores one."
    )


def find(connection: sqlite3.Connection, task_id: str) -> Handoff | None:
    """Read the task's handoff as :func:`load` does; None for a task without one."""
    task_id = read_id(TASK, task_id)
    row = connection.execute(f"{_SELECT} WHERE h.task_id=?", (task_id,)).fetchone()
    if row is not None:
        return _read(row)
    row = connection.execute(
        "SELECT at, detail_json FROM journal WHERE action=?"
        " AND json_extract(detail_json,'$.task_id')=? ORDER BY seq DESC LIMIT 1",
        (str(Action.HANDOFF_ARCHIVED), task_id),
    ).fetchone()
    if row is None:
        return None
    archived_at, archived = row[0], decode_detail(HandoffArchived, row[1])
    return Handoff(
        task_id=task_id,
        status=archived.status,
        summary=archived.summary,
        files_changed=archived.files,
        full_details=None,
        created_at=archived.created_at,
        compacted_at=archived.compacted_at,
        archived_at=archived_at,
    )


def select_before(connection: sqlite3.Connection, task_id: str) -> list[Handoff]:
    """Read the handoffs of the tasks that the task waited for, in the order of their numbers."""
    before = dependencies.select_prerequisites(connection, task_id)
    handoffs = [
        find(connection, each.depends_on_task_id)
        for each in before[:_MOST_BEFORE]
        if each.dependency_type != "relates_to"
    ]
    return [handoff for handoff in handoffs if handoff is not None]


def select_recent(connection: sqlite3.Connection, limit: int = 20) -> list[Handoff]:
    """Read the newest handoffs first."""
    rows = connection.execute(f"{_SELECT} ORDER BY h.created_at DESC, h.task_id LIMIT ?", (limit,))
    return [_read(row) for row in rows]


def compact_story(tx: Tx, story_id: str, *, by: str = "engine") -> list[str]:
    """Delete the details of the story's handoffs; the summaries stay. Returns the tasks' ids.

    The decisions in their work in progress are journalled with it (``handoff.compacted``), because
    later readers ask for them.
    """
    rows = tx.execute(
        f"{_DECAYS} AND t.story_id=? AND h.compacted_at IS NULL ORDER BY t.number", (story_id,)
    ).fetchall()
    if not rows:
        return []
    task_ids = [row[0] for row in rows]
    tx.connection.executemany(
        "UPDATE task_handoffs SET full_details=NULL, compacted_at=? WHERE task_id=?",
        [(tx.now(), task_id) for task_id in task_ids],
    )
    decisions = {task_id: _decisions(wip) for task_id, wip, *_ in rows}
    tx.journal(
        HandoffCompacted(
            story_id=story_id,
            task_ids=tuple(task_ids),
            decisions={task_id: entries for task_id, entries in decisions.items() if entries},
        ),
        actor=by,
    )
    return task_ids


def archive_epic(tx: Tx, epic_id: str, *, by: str = "engine") -> list[str]:
    """Journal and delete the remaining handoffs of the epic. Returns the tasks' ids.

    Each becomes one ``handoff.archived`` row.
    """
    rows = tx.execute(f"{_DECAYS} AND s.epic_id=? ORDER BY t.number", (epic_id,)).fetchall()
    for task_id, _, status, summary, files, created_at, compacted_at, story_id in rows:
        tx.journal(
            HandoffArchived(
                task_id=task_id,
                story_id=story_id,
                epic_id=epic_id,
                status=status,
                summary=summary,
                files=tuple(parse_json(files)),
                created_at=created_at,
                compacted_at=compacted_at,
            ),
            actor=by,
        )
        tx.execute("DELETE FROM task_handoffs WHERE task_id=?", (task_id,))
    return [row[0] for row in rows]


def _check(
    status: str, summary: str, files_changed: Sequence[str], full_details: str | None
) -> None:
    if status not in STATUSES:
        raise HandoffInvalid(
            f"A handoff is PASS, FAIL or BLOCKED, not {str(status)[:40]!r}."
            " PASS means that the task is done and works."
        )
    if not summary.strip():
        raise HandoffInvalid("A handoff needs a summary: two or three sentences about the work.")
    if len(summary) > MOST_SUMMARY:
        raise HandoffInvalid(
            f"The summary has {len(summary):,} characters; the limit is {MOST_SUMMARY:,}."
            " Put the rest into full_details."
        )
    if full_details is not None and len(full_details) > MOST_DETAILS:
        raise HandoffInvalid(
            f"The details have {len(full_details):,} characters; the limit is {MOST_DETAILS:,}."
        )
    if isinstance(files_changed, str) or len(files_changed) > MOST_FILES:
        raise HandoffInvalid(f"files_changed must be a list of at most {MOST_FILES:,} paths.")


def _decisions(wip: str | None) -> list[Any]:
    decisions: list[Any] = parse_json(wip).get("decisions", []) if wip else []
    return decisions[-_MOST_DECISIONS:]


def _read(row: tuple[Any, ...]) -> Handoff:
    task_id, status, summary, files, *rest = row
    return Handoff(task_id, status, summary, tuple(parse_json(files)), *rest)
