"""The backlog as the tables have it: epics, stories and tasks, with what depends on what.

A row of the journal names the tasks that are read again, so that a backlog of ten thousand tasks is drawn as
fast as a small one.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct, field

from cockpit.store.backlog import task_states
from cockpit.store.backlog.epics_and_stories import EPICS, STORIES, Epic, Story
from cockpit.store.backlog.task_states import StoredTask
from cockpit.store.journal.details.backlog import HandoffArchived, TestResults, WorkInProgress
from cockpit.store.journal.details.detail import decode_detail, read_part
from widgets.work.task_card_views import CardView, ResultsView

COLUMNS = ("todo", "in_progress", "review", "blocked", "done")
"""The statuses that are columns of the board, in their order."""

SETTLED = ("done", "archived")
PREFIXES = ("task.", "backlog.", "wip.", "handoff.")
"""What begins rows of the backlog."""
DEFAULT_PRIORITY = "P2"

_STATUSES = (*COLUMNS, "archived")
_PARENTS = 1_000
_DIGITS = 9


class HandoffState(Struct, frozen=True):
    """What a task handed over; ``state`` is ``""``, ``compacted`` or ``archived``."""

    status: str
    summary: str
    files: tuple[str, ...] = ()
    state: str = ""


class TaskState(Struct):
    """A task as it is drawn. ``revision`` is that of the backlog when it was read last; ``needs`` maps what
    it depends on to how."""

    task_id: str
    number: int = 0
    title: str = ""
    description: str = ""
    criteria: str = ""
    type: str = ""
    status: str = "todo"
    story_id: str = ""
    blocker: str = ""
    rework: bool = False
    retry: int = 0
    """Which try comes next while a step waits after it broke off; 0 otherwise."""
    left: bool = False
    """Whether the chain that worked on it last has ended without finishing it."""
    progress: int = 0
    revision: int = 0
    phase: str = ""
    next_step: str = ""
    tests: ResultsView | None = None
    wip_at: str = ""
    ready: bool = False
    """Whether it waits for no other task."""
    needs: dict[str, str] = field(default_factory=dict)
    handoff: HandoffState | None = None
    card: tuple[int, CardView] | None = None
    """The card that was drawn last, and the state of names it was drawn with."""
    sought: tuple[int, str] | None = None
    """The words by which it is found, likewise."""


class WorkChanges(Struct, frozen=True):
    """The parts of the backlog that rows changed, as the tables have them now."""

    tasks: Sequence[TaskState] = ()
    epics: Sequence[Epic] = ()
    stories: Sequence[Story] = ()


class Work:
    """The backlog. ``revision`` grows with every change, ``names`` with those of epics and stories, which
    many cards show, ``moved`` with those of one status."""

    def __init__(self) -> None:
        self.revision = 0
        self.names = 0
        self.epics: dict[str, Epic] = {}
        self.stories: dict[str, Story] = {}
        self.tasks: dict[str, TaskState] = {}
        self.ready: set[str] = set()
        self.moved: dict[str, int] = dict.fromkeys(_STATUSES, 0)
        self._standing: dict[str, dict[str, TaskState]] = {name: {} for name in _STATUSES}
        self._dependents: dict[str, set[str]] = {}

    def take(self, changes: WorkChanges) -> None:
        """Put what was read into the place of what was there."""
        self.revision += 1
        for task in changes.tasks:
            self.put(task)
        for epic in changes.epics:
            self.epics[epic.epic_id] = epic
        for story in changes.stories:
            self.stories[story.story_id] = story
        self.names += bool(changes.epics or changes.stories)

    def put(self, task: TaskState) -> None:
        """Put a task in the place of what was known of it; one that came to another status is last there."""
        task.revision = self.revision
        before = self.tasks.get(task.task_id)
        if before is not None:
            if task.handoff is None and before.handoff is not None:
                task.handoff = msgspec.structs.replace(before.handoff, state="archived")
            if before.status != task.status:
                self._standing[before.status].pop(task.task_id)
            self.moved[before.status] = self.revision
            for other in before.needs.keys() - task.needs.keys():
                self._dependents[other].discard(task.task_id)
        self.tasks[task.task_id] = self._standing[task.status][task.task_id] = task
        self.moved[task.status] = self.revision
        for other in task.needs:
            self._dependents.setdefault(other, set()).add(task.task_id)
        (self.ready.add if task.ready else self.ready.discard)(task.task_id)

    def mark(self, task_id: str, *, left: bool, retry: int) -> None:
        """Note how the chain of a task stands: it ended without finishing it, or tries a step again."""
        task = self.tasks.get(task_id)
        if task is not None and (task.left, task.retry) != (left, retry):
            self.revision += 1
            self.moved[task.status] = self.revision
            task.left, task.retry, task.card = left, retry, None

    # Queries

    def standing(self, status: str) -> dict[str, TaskState]:
        """The tasks of a status, those that came to it last at the end."""
        return self._standing[status]

    def epic_of(self, task: TaskState) -> Epic | None:
        """The epic that a task's story belongs to."""
        story = self.stories.get(task.story_id)
        return self.epics.get(story.epic_id or "") if story is not None else None

    def priority(self, task: TaskState) -> str:
        """The priority of a task: its epic's."""
        epic = self.epic_of(task)
        return epic.priority if epic is not None else DEFAULT_PRIORITY

    def waits_for(self, task: TaskState) -> list[str]:
        """The tasks that have to be done before this one, the oldest first."""
        needed = [each for each, how in task.needs.items() if how != "relates_to"]
        return sorted((each for each in needed if self._open(each)), key=self._number)

    def dependents(self, task_id: str) -> list[str]:
        """The tasks that depend on this one, in any way."""
        return sorted(self._dependents.get(task_id, ()), key=self._number)

    def _open(self, task_id: str) -> bool:
        task = self.tasks.get(task_id)
        return task is None or task.status not in SETTLED

    def _number(self, task_id: str) -> tuple[int, str]:
        return number_in(task_id), task_id


# Reading


def read_changes(
    connection: sqlite3.Connection,
    task_ids: Iterable[str],
    epic_ids: Iterable[str],
    story_ids: Iterable[str],
) -> WorkChanges:
    """Return parts of the backlog as they are now."""
    return WorkChanges(
        [_state(task) for task in task_states.select_named(connection, sorted(task_ids))],
        [epic for each in epic_ids for epic in EPICS.select_named(connection, each)],
        [story for each in story_ids for story in STORIES.select_named(connection, each)],
    )


class WorkReader:
    """Reads the whole backlog part by part into ``work``, which is complete after the last part.

    A backlog of one part is there with the first picture; a larger one a moment later.
    """

    def __init__(self) -> None:
        self.work = Work()
        self._number = 0
        self._done: list[StoredTask] = []

    def read_part(self, connection: sqlite3.Connection) -> bool:
        """Read the next tasks; return whether there are more."""
        tasks = task_states.select_part(connection, self._number)
        for task in tasks:
            if task.status == "done":
                self._done.append(task)  # in the order in which they came to it
            else:
                self.work.put(_state(task))
        if len(tasks) == task_states.PART:
            self._number = tasks[-1].number
            return True
        done = sorted(self._done, key=lambda task: (task.done_at, task.task_id))
        self.work.take(
            WorkChanges(
                [_state(task) for task in done],
                _select_all(EPICS, connection),
                _select_all(STORIES, connection),
            )
        )
        _add_archived_handoffs(self.work, connection, len(self.work.tasks))
        return False


def _select_all(parents: Any, connection: sqlite3.Connection) -> list[Any]:
    """Return all epics, or all stories."""
    parents_read: list[Any] = []
    while part := parents.select_after(
        connection, parents_read[-1].number if parents_read else 0, _PARENTS
    ):
        parents_read += part
    return parents_read


def _state(task: StoredTask) -> TaskState:
    state = TaskState(
        task.task_id, task.number, task.title, task.description, task.criteria, task.type,
        task.status, task.story_id, task.blocker, task.rework, left=task.left,
        progress=task.progress, ready=task.ready and task.status == "todo", needs=dict(task.needs),
    )  # fmt: skip
    if task.wip_json:
        wip = decode_detail(WorkInProgress, task.wip_json)
        state.phase = wip.phase if isinstance(wip.phase, str) else ""
        state.next_step = wip.next_step if isinstance(wip.next_step, str) else ""
        state.tests = tests_of(wip.test_results) if wip.test_results else None
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


def tests_of(results: Mapping[str, Any]) -> ResultsView:
    """Return the view of stored test results."""
    read = read_part(TestResults, results)
    return ResultsView(
        passed=read.passed,
        failed=read.failed,
        first_failing=read.failing_test,
        ran=read.ran is not False,
    )


def number_in(identity: str) -> int:
    """The number in an id such as ``T-42``; 0 where there is none."""
    digits = identity.partition("-")[2]
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS else 0
