"""The backlog's services: they write epics, stories, tasks and dependencies.

Each takes the open transaction, updates the work queue and the status of stories and epics in it, and
journals the change. Ids may be typed loosely (``t-42``, ``42``). ``by`` is the actor in the journal.
Errors are :class:`~cockpit.core.errors.CockpitError` and say what to do. See
``docs/reference/backlog.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from cockpit.backlog import validation
from cockpit.backlog.story_completion import (
    BeforeDecay,
    Boundaries,
    decay_handoffs,
    update_epic_status,
    update_story_status,
)
from cockpit.backlog.task_type_names import names_for
from cockpit.backlog.validation import BacklogInvalid
from cockpit.store.backlog import dependencies, task_activity, tasks, work_queue
from cockpit.store.backlog.epics_and_stories import DEFAULT_PRIORITY, EPICS, STORIES, Epic, Story
from cockpit.store.backlog.task_activity import Activity, Failure
from cockpit.store.backlog.tasks import Task
from cockpit.store.db.transaction import Tx
from cockpit.store.hooks import pending_events
from cockpit.store.journal.details.backlog import ReachedBoundaries, TaskStatusChanged
from cockpit.store.journal.details.detail import read_part

EPIC_FIELDS = ("title", "description", "priority", "status")
STORY_FIELDS = ("title", "description", "status", "epic_id")
TASK_FIELDS = (
    "title",
    "description",
    "acceptance_criteria",
    "task_type",
    "estimate_hours",
    "source",
    "packages",
    "files",
    "story_id",
    "progress_percent",
    "context_summary",
    "handoff_notes",
    "needs_rework",
    "session_id",
)
"""Fields that :func:`update_task` can change; :func:`set_status` changes the status."""
_CLAIMING = ("story_id", "packages", "files")


def create_epic(
    tx: Tx,
    title: str,
    *,
    description: str = "",
    priority: str = DEFAULT_PRIORITY,
    source: str = "",
    by: str,
) -> Epic:
    """Create an epic."""
    return EPICS.insert(
        tx,
        validation.title(title),
        description=validation.text("The description", description),
        priority=validation.priority(priority),
        source=source,
        by=by,
    )


def create_story(
    tx: Tx, title: str, *, epic_id: str | None = None, description: str = "", by: str
) -> Story:
    """Create a story; a finished epic that gets one opens again."""
    epic = EPICS.load(tx.connection, epic_id).epic_id if epic_id else None
    story = STORIES.insert(
        tx,
        validation.title(title),
        epic_id=epic,
        description=validation.text("The description", description),
        by=by,
    )
    update_epic_status(tx, epic, by=by)
    return story


def create_task(tx: Tx, title: str, *, story_id: str | None = None, by: str, **fields: Any) -> Task:
    """Create a task and queue it; a finished story that gets one opens again.

    ``fields`` are :data:`TASK_FIELDS`.
    """
    story = STORIES.load(tx.connection, story_id).story_id if story_id else None
    types = names_for(tx.connection, fields.get("task_type"))
    read = validation.changes({"title": title, **fields}, TASK_FIELDS, task_types=types)
    task = tasks.insert(tx, replace(tasks.new_draft(""), **read, story_id=story), by=by)
    update_story_status(tx, story, by=by)
    work_queue.refresh(tx, [task.task_id])
    return task


def update_epic(tx: Tx, epic_id: str, changes: Mapping[str, Any], *, by: str) -> Epic:
    """Change an epic; a new priority reorders the queue."""
    epic = EPICS.load(tx.connection, epic_id)
    read = validation.changes(changes, EPIC_FIELDS)
    if read.get("status") in ("done", "archived"):
        _refuse_open_parts(
            tx, f"{epic.epic_id} has open stories", "epic_id", "stories", epic.epic_id
        )
    updated = EPICS.change(tx, epic, read, by=by)
    if updated.priority != epic.priority:
        work_queue.refresh(tx, _tasks_of(tx, "epic_id", epic.epic_id))
    if updated.status == "done" != epic.status:
        decay_handoffs(tx, Boundaries(False, True, None, epic.epic_id), None)
    return updated


def update_story(tx: Tx, story_id: str, changes: Mapping[str, Any], *, by: str) -> Story:
    """Change a story; moving it to another epic reorders the queue."""
    story = STORIES.load(tx.connection, story_id)
    read = validation.changes(changes, STORY_FIELDS)
    if "epic_id" in read:
        named = read["epic_id"]
        read["epic_id"] = EPICS.load(tx.connection, named).epic_id if named else None
    if read.get("status") in ("done", "archived"):
        _refuse_open_parts(
            tx, f"{story.story_id} has open tasks", "story_id", "tasks", story.story_id
        )
    updated = STORIES.change(tx, story, read, by=by)
    finished = updated.status == "done" != story.status
    for epic_id in dict.fromkeys((updated.epic_id, story.epic_id)):
        ended = update_epic_status(tx, epic_id, by=by)
        ours = finished and epic_id == updated.epic_id
        decay_handoffs(tx, Boundaries(ours, ended, story.story_id if ours else None, epic_id), None)
    if updated.epic_id != story.epic_id:
        work_queue.refresh(tx, _tasks_of(tx, "story_id", story.story_id))
    return STORIES.load(tx.connection, story.story_id)


def update_task(
    tx: Tx, task_id: str, changes: Mapping[str, Any], *, by: str, session_id: str = ""
) -> Task:
    """Change :data:`TASK_FIELDS` of a task; unchanged, nothing is journalled."""
    task = tasks.load(tx.connection, task_id)
    # The type that it has stays valid, though its file may be gone.
    types = (*names_for(tx.connection, changes.get("task_type")), task.task_type)
    read = validation.changes(changes, TASK_FIELDS, task_types=types)
    if "story_id" in read:
        named = read["story_id"]
        read["story_id"] = STORIES.load(tx.connection, named).story_id if named else None
    if all(getattr(task, name) == value for name, value in read.items()):
        return task
    updated = tasks.change(tx, task, read)
    if updated.story_id != task.story_id:
        for story_id in (updated.story_id, task.story_id):
            decay_handoffs(tx, update_story_status(tx, story_id, by=by), None)
    if any(getattr(updated, name) != getattr(task, name) for name in _CLAIMING):
        work_queue.refresh(tx, [updated.task_id])
    tasks.journal_change(tx, updated, by=by, session_id=session_id)
    return updated


def set_status(
    tx: Tx,
    task_id: str,
    status: str,
    notes: str | None = None,
    *,
    by: str,
    session_id: str = "",
    before_decay: BeforeDecay | None = None,
) -> Boundaries:
    """Set a task's status; ``notes`` say why, and for a blocked task what blocks it.

    Finishing the last task finishes its story, and the last story its epic; opening a task opens
    them. Handoffs of what was completed decay in this transaction, after ``before_decay``.
    """
    task = tasks.load(tx.connection, task_id)
    validation.status(status)
    words = validation.text("The notes", notes or "")
    blocker = words if status == "blocked" else ""
    if status == task.status and not (blocker and blocker != task.blocker):
        if words:
            task_activity.add(tx, task.task_id, "note", words, by=by)
        return Boundaries(story_id=task.story_id, epic_id=task.epic_id)
    changes: dict[str, Any] = {"status": status, "blocker": blocker}
    if status == "blocked" and not blocker:
        changes["blocker"] = task.blocker
    if status in ("in_progress", "review") and task.started_at is None:
        changes["started_at"] = tx.now()
    changes["done_at"] = tx.now() if status == "done" else None
    if status == "done":
        changes |= {"progress_percent": 100, "needs_rework": False}
    elif task.status == "done" and task.progress_percent == 100:
        changes["progress_percent"] = 0
    if session_id and status == "in_progress":
        changes["session_id"] = session_id
    updated = tasks.change(tx, task, changes)
    if status in ("done", "archived", "blocked"):
        pending_events.leave_task(tx.connection, updated.task_id)
    reached = update_story_status(tx, updated.story_id, by=by)
    work_queue.refresh(tx, [updated.task_id])
    tx.journal(
        TaskStatusChanged(
            task_id=updated.task_id,
            story_id=updated.story_id,
            epic_id=updated.epic_id,
            title=updated.title,
            from_=task.status,
            to=status,
            notes=words,
            blocker=updated.blocker,
            boundaries=read_part(ReachedBoundaries, reached.body()),
        ),
        actor=by,
        session_id=session_id,
    )
    if words and status != "blocked":
        task_activity.add(tx, updated.task_id, "note", words, by=by)
    decay_handoffs(tx, reached, before_decay)
    return reached


def block(tx: Tx, task_id: str, reason: str, *, by: str, session_id: str = "") -> Boundaries:
    """Mark the task as blocked for this reason; tasks that depend on it wait."""
    if not reason.strip():
        raise BacklogInvalid(
            "No reason is given. Say what blocks it: the next worker needs to know."
        )
    return set_status(tx, task_id, "blocked", reason, by=by, session_id=session_id)


def resolve_blocker(tx: Tx, task_id: str, *, by: str) -> Boundaries:
    """Unblock a task: it returns to ``todo``, or to ``in_progress`` where it was started."""
    task = tasks.load(tx.connection, task_id)
    if task.status != "blocked":
        raise BacklogInvalid(f"{task.task_id} is not blocked; it is {task.status}.")
    return set_status(tx, task_id, "in_progress" if task.started_at else "todo", by=by)


def reopen(tx: Tx, task_id: str, notes: str | None = None, *, by: str) -> Boundaries:
    """A finished or archived task is to be done again; its story and epic are open with it."""
    task = tasks.load(tx.connection, task_id)
    if task.status not in ("done", "archived", "review"):
        raise BacklogInvalid(f"{task.task_id} is open; it is {task.status}.")
    return set_status(tx, task_id, "todo", notes, by=by)


def archive(
    tx: Tx,
    task_id: str,
    reason: str | None = None,
    *,
    by: str,
    before_decay: BeforeDecay | None = None,
) -> Boundaries:
    """Archive a task: it will not be done, and no task waits for it. It keeps its id."""
    return set_status(tx, task_id, "archived", reason, by=by, before_decay=before_decay)


def add_dependency(
    tx: Tx, task_id: str, depends_on_task_id: str, dependency_type: str = "blocks", *, by: str
) -> bool:
    """The first task depends on the second; False where that was so. Raises ``Cycle``."""
    validation.one_of("The type of a dependency", dependency_type, dependencies.TYPES)
    task = tasks.load(tx.connection, task_id).task_id
    other = tasks.load(tx.connection, depends_on_task_id).task_id
    added = dependencies.add(tx, task, other, dependency_type, by=by)
    if added:
        work_queue.refresh(tx, [task, other], linked=True)
    return added


def remove_dependency(tx: Tx, task_id: str, depends_on_task_id: str, *, by: str) -> None:
    """The first task depends on the second no more. Raises ``NotFound``."""
    task = tasks.load(tx.connection, task_id).task_id
    other = tasks.load(tx.connection, depends_on_task_id).task_id
    dependencies.remove(tx, task, other, by=by)
    work_queue.refresh(tx, [task, other], linked=True)


def add_activity(
    tx: Tx, task_id: str, activity_type: str, description: str, *, by: str
) -> Activity:
    """Note what happened on a task."""
    validation.one_of("The type of activity", activity_type, task_activity.ACTIVITY_TYPES)
    words = validation.text("The description", description)
    if not words:
        raise BacklogInvalid("The description is empty; say what happened.")
    task = tasks.load(tx.connection, task_id)
    return task_activity.add(tx, task.task_id, activity_type, words, by=by)


def record_failure(
    tx: Tx, task_id: str, failure_type: str, reason: str, attempt: int | None = None, *, by: str
) -> Failure:
    """Record a failed attempt at a task: of the spec, the quality or the implementation."""
    validation.one_of("The type of failure", failure_type, task_activity.FAILURE_TYPES)
    if attempt is not None:
        validation.attempt(attempt)
    task = tasks.load(tx.connection, task_id)
    words = validation.text("The reason", reason)
    return task_activity.record_failure(tx, task.task_id, failure_type, words, attempt, by=by)


def set_needs_rework(tx: Tx, task_id: str, value: bool, *, by: str) -> Task:
    """Set whether the task's work has to be done again."""
    return update_task(tx, task_id, {"needs_rework": value}, by=by)


def summarize_activity(tx: Tx, task_id: str, *, delete_raw: bool = False, by: str) -> str:
    """Put what happened on a task into its context summary; returns that.

    ``delete_raw`` replaces the rows by the summary; the journal keeps every one.
    """
    task = tasks.load(tx.connection, task_id)
    rows = task_activity.select_for_task(tx.connection, task.task_id, limit=200)
    if not rows:
        raise BacklogInvalid(f"Nothing happened on {task.task_id} yet; there is nothing to sum up.")
    lines = [f"{row.created_at[:16]} {row.activity_type}: {row.description}" for row in rows]
    words = "\n".join(reversed(lines))[-validation.LONGEST_TEXT :]
    update_task(tx, task.task_id, {"context_summary": words}, by=by)
    if delete_raw:
        task_activity.replace_with_summary(tx, task.task_id, words, by=by)
    return words


def _refuse_open_parts(tx: Tx, problem: str, column: str, table: str, identity: str) -> None:
    key = "story_id" if table == "stories" else "task_id"
    rows = tx.execute(
        f"SELECT {key} FROM {table} WHERE {column}=? AND status NOT IN ('done','archived')"  # noqa: S608
        " ORDER BY number LIMIT 6",
        (identity,),
    ).fetchall()
    if rows:
        names = ", ".join(row[0] for row in rows[:5]) + (" and more" if len(rows) > 5 else "")
        raise BacklogInvalid(f"{problem}: {names}. Finish or archive these first.")


def _tasks_of(tx: Tx, column: str, identity: str) -> list[str]:
    rows = tx.execute(
        f"SELECT task_id FROM tasks JOIN stories USING(story_id) WHERE {column}=?",  # noqa: S608
        (identity,),
    )
    return [row[0] for row in rows]
