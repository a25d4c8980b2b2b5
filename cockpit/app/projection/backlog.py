"""The backlog folded from the journal: epics, stories and tasks, with their dependencies and statuses.

No row of any shape raises. A change updates only the tasks that it concerns, so that a backlog of ten
thousand tasks is drawn as fast as a small one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Struct, UnsetType, field

from cockpit.store.journal.details import backlog as details
from cockpit.store.journal.details.backlog import TestResults, WorkInProgress
from cockpit.store.journal.details.detail import read_part
from cockpit.store.journal.journal import Row
from widgets.work.task_card_views import CardView, ResultsView

COLUMNS = ("todo", "in_progress", "review", "blocked", "done")
"""The statuses that are columns of the board, in their order."""

SETTLED = ("done", "archived")
PREFIXES = ("task.", "story.", "epic.", "wip.", "handoff.", "queue.")
DEFAULT_PRIORITY = "P2"

_STATUSES = (*COLUMNS, "archived")
_DIGITS = 9

T = TypeVar("T", str, int, bool)


class EpicState(Struct):
    """An epic as the journal records it."""

    epic_id: str
    title: str = ""
    description: str = ""
    priority: str = DEFAULT_PRIORITY
    status: str = "todo"


class StoryState(Struct):
    """A story as the journal tells it."""

    story_id: str
    title: str = ""
    description: str = ""
    epic_id: str = ""
    status: str = "todo"


class HandoffState(Struct):
    """What a task handed over; ``state`` is ``""``, ``compacted`` or ``archived``."""

    status: str
    summary: str
    files: tuple[str, ...] = ()
    state: str = ""


class TaskState(Struct):
    """A task as the journal records it. ``seq`` is its latest row, ``moved`` that of its status;
    ``needs`` maps what it depends on to how."""

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
    seq: int = 0
    moved: int = 0
    phase: str = ""
    next_step: str = ""
    tests: ResultsView | None = None
    files: int = 0
    uncommitted: bool = False
    wip_at: str = ""
    needs: dict[str, str] = field(default_factory=dict)
    handoff: HandoffState | None = None
    card: tuple[int, CardView] | None = None
    """The card that was drawn last, and the state of names it was drawn with."""
    sought: tuple[int, str] | None = None
    """The words by which it is found, likewise."""


class Preview(msgspec.Struct, frozen=True):
    """How many tasks are in each status and how many are ready, while not all tasks are there."""

    counts: Mapping[str, int]
    ready: int


class Work:
    """The backlog as the journal records it. ``revision`` grows with every change, ``names``
    with those of epics and stories, which many cards show, ``moved`` with those of one status."""

    def __init__(self) -> None:
        self.revision = 0
        self.names = 0
        self.preview: Preview | None = None
        """Set while only the tasks that the work pane shows are there."""
        self.epics: dict[str, EpicState] = {}
        self.stories: dict[str, StoryState] = {}
        self.tasks: dict[str, TaskState] = {}
        self.ready: set[str] = set()
        self.moved: dict[str, int] = dict.fromkeys(_STATUSES, 0)
        self._standing: dict[str, dict[str, TaskState]] = {name: {} for name in _STATUSES}
        self._dependents: dict[str, set[str]] = {}

    def apply(self, row: Row) -> None:
        """Fold one row whose action begins with one of :data:`PREFIXES`."""
        self.revision += 1
        match detail := row.detail:
            case details.EpicState():
                self._epic(detail)
            case details.StoryState():
                self._story(detail)
            case details.HandoffCompacted():
                for task_id in detail.task_ids:
                    task = self._task(task_id, row.seq)
                    if task.handoff is not None and task.handoff.state != "archived":
                        task.handoff.state = "compacted"
            case (
                details.TaskState()
                | details.TaskStatusChanged()
                | details.TaskDependencyAdded()
                | details.TaskDependencyRemoved()
                | details.TaskActivity()
                | details.TaskFailed()
                | details.WipUpdated()
                | details.HandoffSet()
                | details.HandoffArchived()
            ) if detail.task_id:
                self._change(self._task(detail.task_id, row.seq), row)

    def delay(self, task_id: str, attempt: int, seq: int) -> None:
        """Record that a step of the task broke off, and which try comes next."""
        if task_id in self.tasks:
            self.revision += 1
            self._task(task_id, seq).retry = attempt

    def leave(self, task_id: str, *, left: bool) -> None:
        """Record that the chain that works on a task ended, or that one works on it again."""
        task = self.tasks.get(task_id)
        if task is not None and task.left != left:
            self.revision += 1
            self.moved[task.status] += 1
            task.left, task.card = left, None

    # Tables

    def add(self, task: TaskState) -> None:
        """Add a task as the tables have it; :meth:`settle_all` follows once all are there."""
        self.tasks[task.task_id] = task
        self._standing[task.status][task.task_id] = task
        for other in task.needs:
            self._dependents.setdefault(other, set()).add(task.task_id)

    def order_done(self, task_ids: Iterable[str]) -> None:
        """Put the tasks that are done into the order in which they came to it."""
        done = self._standing["done"]
        for place, task_id in enumerate(task_ids, start=-len(done)):
            task = done.pop(task_id)
            task.moved = place  # before every task that a later row moves
            done[task_id] = task

    def settle_all(self) -> None:
        """Derive which tasks are ready."""
        self.revision += 1
        self._settle(self.tasks)

    # Queries

    def total(self, status: str) -> int:
        """How many tasks are in a status."""
        if self.preview is not None:
            return self.preview.counts.get(status, 0)
        return len(self.standing(status))

    @property
    def total_ready(self) -> int:
        """How many tasks wait for no other task."""
        return self.preview.ready if self.preview is not None else len(self.ready)

    def standing(self, status: str) -> Mapping[str, TaskState]:
        """The tasks of a status, those that came to it last at the end."""
        return self._standing.get(status, {})

    def epic_of(self, task: TaskState) -> EpicState | None:
        """The epic that a task's story belongs to."""
        story = self.stories.get(task.story_id)
        return self.epics.get(story.epic_id) if story is not None else None

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

    # Rows

    def _task(self, task_id: str, seq: int) -> TaskState:
        task = self.tasks.get(task_id)
        if task is None:
            task = self.tasks[task_id] = TaskState(task_id, number_in(task_id))
            self._standing["todo"][task_id] = task
            self._settle([task_id])
        task.seq, task.card, task.sought = seq, None, None
        self.moved[task.status] = self.revision
        return task

    def _epic(self, detail: details.EpicState) -> None:
        if not detail.epic_id:
            return
        epic = self.epics.setdefault(detail.epic_id, EpicState(detail.epic_id))
        before = (epic.title, epic.priority)
        epic.title = _given(detail.title, epic.title)
        epic.description = _given(detail.description, epic.description)
        epic.priority = _given(detail.priority, epic.priority)
        epic.status = _given(detail.status, epic.status)
        self.names += before != (epic.title, epic.priority)

    def _story(self, detail: details.StoryState) -> None:
        if not detail.story_id:
            return
        story = self.stories.setdefault(detail.story_id, StoryState(detail.story_id))
        before = (story.title, story.epic_id)
        story.title = _given(detail.title, story.title)
        story.description = _given(detail.description, story.description)
        story.epic_id = _given(detail.epic_id, story.epic_id)
        story.status = _given(detail.status, story.status)
        self.names += before != (story.title, story.epic_id)

    def _change(self, task: TaskState, row: Row) -> None:
        task.retry = 0
        match detail := row.detail:
            case details.TaskState():
                task.title = _given(detail.title, task.title)
                task.description = _given(detail.description, task.description)
                task.criteria = _given(detail.acceptance_criteria, task.criteria)
                task.type = _given(detail.type, task.type)
                task.story_id = _given(detail.story_id, task.story_id)
                task.blocker = _given(detail.blocker, task.blocker)
                task.rework = _given(detail.needs_rework, task.rework)
                task.progress = _given(detail.progress_percent, task.progress)
                self._stand(task, _given(detail.status, task.status), row.seq)
            case details.TaskStatusChanged():
                task.title = task.title or detail.title
                status = detail.to or task.status
                task.blocker = (detail.blocker or detail.notes) if status == "blocked" else ""
                task.rework = task.rework and status != "done"
                self._stand(task, status, row.seq)
            case details.TaskDependencyAdded() if other := detail.depends_on_task_id:
                task.needs[other] = detail.dependency_type or "blocks"
                self._dependents.setdefault(other, set()).add(task.task_id)
                self._settle([task.task_id])
            case details.TaskDependencyRemoved() if other := detail.depends_on_task_id:
                task.needs.pop(other, None)
                self._dependents.get(other, set()).discard(task.task_id)
                self._settle([task.task_id])
            case details.WipUpdated():
                self._wip(task, row, detail)
            case details.HandoffSet() | details.HandoffArchived():
                archived = isinstance(detail, details.HandoffArchived)
                before = task.handoff
                task.handoff = HandoffState(
                    detail.status or (before.status if before else ""),
                    detail.summary or (before.summary if before else ""),
                    detail.files or (before.files if before else ()),
                    "archived" if archived else "",
                )

    def _stand(self, task: TaskState, status: str, seq: int) -> None:
        if status == task.status or status not in _STATUSES:
            return
        reopened_or_settled = (task.status in SETTLED) != (status in SETTLED)
        self._standing[task.status].pop(task.task_id, None)
        self.moved[task.status] = self.moved[status] = self.revision
        task.status, task.moved = status, seq
        self._standing[status][task.task_id] = task
        dependents = self._dependents.get(task.task_id, ()) if reopened_or_settled else ()
        self._settle([task.task_id, *dependents])

    def _settle(self, task_ids: Iterable[str]) -> None:
        """Whether these tasks are ready, now."""
        for task_id in task_ids:
            task = self.tasks.get(task_id)
            if task is None:
                continue
            task.card = None
            self.moved[task.status] = self.revision
            ready = task.status == "todo" and not any(
                how != "relates_to" and self._open(other) for other, how in task.needs.items()
            )
            (self.ready.add if ready else self.ready.discard)(task_id)

    def _wip(self, task: TaskState, row: Row, detail: details.WipUpdated) -> None:
        if not task.title and task.status == "todo":
            self._stand(task, "in_progress", row.seq)  # A replay that begins in the middle.
        patch = read_part(WorkInProgress, detail.patch)
        task.phase = _given(detail.phase or patch.phase or detail.phase, task.phase)
        task.next_step = _given(
            detail.next_step or patch.next_step or detail.next_step, task.next_step
        )
        results = detail.test_results or patch.test_results
        if results:
            task.tests = tests_of(results)
        task.files = max(detail.files_count, len(detail.files)) or task.files
        task.uncommitted = _given(patch.uncommitted_changes, task.uncommitted)
        task.uncommitted = _given(detail.uncommitted_changes, task.uncommitted)
        task.wip_at = row.at


def _given(value: T | UnsetType | None, before: T) -> T:
    """Return a field of a row, or the value before where the row does not have the field."""
    if isinstance(value, UnsetType):
        return before
    return type(before)() if value is None else value


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
