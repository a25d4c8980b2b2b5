"""The backlog as the tables have it: what the work pane shows first, then all of it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable

from cockpit.app.projection.backlog import (
    COLUMNS,
    EpicState,
    HandoffState,
    Preview,
    StoryState,
    TaskState,
    Work,
    tests_of,
)
from cockpit.store.backlog import task_states
from cockpit.store.backlog.epics_and_stories import EPICS, STORIES, Epic, Story
from cockpit.store.backlog.task_states import StoredTask
from cockpit.store.journal.details.backlog import HandoffArchived, WorkInProgress
from cockpit.store.journal.details.detail import decode_detail

SMALL = 300
"""Tasks up to which the backlog is read at once, before the first picture."""
_AT_WORK = ("in_progress", "review", "blocked")
_LINES = 40
_DONE_LINES = 3
_PARENTS = 1_000


def read_preview(
    connection: sqlite3.Connection, task_ids: Iterable[str], scopes: Iterable[str]
) -> Work:
    """Return the tasks of the work pane and those of ``task_ids``; the others are only counted.

    ``scopes`` are epics and stories whose titles are shown. A small backlog is read whole.
    """
    counts = task_states.count_tasks(connection, (*COLUMNS, "archived"))
    if sum(counts.values()) <= SMALL:
        return read_work(connection)
    work = Work()
    ready = task_states.count_ready(connection)
    work.preview = Preview(counts, ready)
    for scope in scopes:
        for epic in EPICS.select_named(connection, scope):
            work.epics[scope] = _epic(epic)
        for story in STORIES.select_named(connection, scope):
            work.stories[scope] = _story(story)
    tasks = task_states.select_named(connection, sorted(set(task_ids)))
    for status in _AT_WORK:
        tasks += task_states.select_by_status(connection, status, _LINES)
    tasks += task_states.select_done_last(connection, _DONE_LINES)
    _add(work, {task.task_id: task for task in tasks}.values())
    _add_archived_handoffs(work, connection, 50)
    work.ready = {task.task_id for task in tasks if task.ready}
    return work


def read_work(connection: sqlite3.Connection) -> Work:
    """Return the whole backlog."""
    reader = WorkReader()
    while reader.read_part(connection):
        continue
    return reader.work


class WorkReader:
    """Reads the whole backlog part by part into ``work``, which is complete after the last part."""

    def __init__(self) -> None:
        self.work = Work()
        self._number = 0
        self._done: list[tuple[str, str]] = []

    def read_part(self, connection: sqlite3.Connection) -> bool:
        """Read the next tasks; return whether there are more."""
        tasks = task_states.select_part(connection, self._number)
        _add(self.work, tasks)
        self._done += [(task.done_at, task.task_id) for task in tasks if task.status == "done"]
        if len(tasks) == task_states.PART:
            self._number = tasks[-1].number
            return True
        _add_parents(self.work, connection)
        _add_archived_handoffs(self.work, connection, len(self.work.tasks))
        self.work.order_done(task_id for _, task_id in sorted(self._done))
        self.work.settle_all()
        return False


def _add_parents(work: Work, connection: sqlite3.Connection) -> None:
    number = 0
    while epics := EPICS.select_after(connection, number, _PARENTS):
        number = epics[-1].number
        work.epics.update((each.epic_id, _epic(each)) for each in epics)
    number = 0
    while stories := STORIES.select_after(connection, number, _PARENTS):
        number = stories[-1].number
        work.stories.update((each.story_id, _story(each)) for each in stories)
    work.names += 1


def _epic(epic: Epic) -> EpicState:
    return EpicState(epic.epic_id, epic.title, epic.description, epic.priority, epic.status)


def _story(story: Story) -> StoryState:
    home = story.epic_id or ""
    return StoryState(story.story_id, story.title, story.description, home, story.status)


def _add(work: Work, tasks: Iterable[StoredTask]) -> None:
    for task in tasks:
        work.add(_state(task))


def _state(task: StoredTask) -> TaskState:
    state = TaskState(
        task.task_id, task.number, task.title, task.description, task.criteria, task.type,
        task.status, task.story_id, task.blocker, task.rework, left=task.left,
        progress=task.progress, needs=dict(task.needs),
    )  # fmt: skip
    if task.wip_json:
        wip = decode_detail(WorkInProgress, task.wip_json)
        state.phase = wip.phase if isinstance(wip.phase, str) else ""
        state.next_step = wip.next_step if isinstance(wip.next_step, str) else ""
        state.tests = tests_of(wip.test_results) if wip.test_results else None
        state.files = len(wip.files_modified)
        state.uncommitted = wip.uncommitted_changes is True
        state.wip_at = task.wip_at
    if task.handoff is not None:
        status, summary, files, compacted = task.handoff
        state.handoff = HandoffState(
            status, summary, tuple(json.loads(files)), "compacted" if compacted else ""
        )
    return state


def _add_archived_handoffs(work: Work, connection: sqlite3.Connection, limit: int) -> None:
    for row in task_states.archived_handoffs(connection, limit):
        detail = row.read(HandoffArchived)
        task = work.tasks.get(detail.task_id)
        if task is not None and task.handoff is None:
            task.handoff = HandoffState(detail.status, detail.summary, detail.files, "archived")
