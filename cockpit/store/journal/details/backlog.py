"""Details of the backlog: epics, stories, tasks, work in progress, handoffs and the queue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET, UnsetType

from cockpit.store.journal.details.detail import Detail, Part


class BacklogChanged(Detail, frozen=True, kw_only=True):
    """An epic or a story was created or changed: as it is from now on."""

    epic_id: str | None
    """The epic; the story's epic, if it has one."""
    story_id: str = ""
    """The story; empty for an epic."""
    title: str
    """The title."""
    status: str
    """``todo``, ``in_progress``, ``done`` or ``archived``."""
    description: str
    """The description."""
    priority: str = ""
    """``P0`` to ``P3``, of an epic."""
    source: str = ""
    """Where an epic comes from."""


class TaskState(Detail, frozen=True, kw_only=True):
    """A task was created or changed: as it is from now on."""

    task_id: str
    story_id: str | None
    """The task's story."""
    epic_id: str | None
    """The epic of the task's story."""
    title: str
    """The title."""
    status: str
    """``todo``, ``in_progress``, ``review``, ``blocked``, ``done`` or ``archived``."""
    description: str
    """The description."""
    acceptance_criteria: str
    """When the task counts as done."""
    type: str
    """The kind of task, for example ``implementation``."""
    priority: str
    """The priority of the task's epic."""
    progress_percent: int
    """The progress, 0 to 100."""
    needs_rework: bool
    """Whether a review sent the task back."""
    blocker: str
    """Why the task is blocked; empty for one that is not."""


class ReachedBoundaries(Part, frozen=True, kw_only=True):
    """The story and the epic that a task completed."""

    story_completed: bool
    """Whether the task was the last of its story."""
    epic_completed: bool
    """Whether the story was the last of its epic."""
    story_id: str | None
    """The story."""
    epic_id: str | None
    """The epic."""


class TaskStatusChanged(Detail, frozen=True, kw_only=True, rename={"from_": "from"}):
    """A task entered another status."""

    task_id: str
    story_id: str | None
    """The task's story."""
    epic_id: str | None
    """The epic of the task's story."""
    title: str
    """The title."""
    from_: str
    """The status before."""
    to: str
    """The status from now on."""
    notes: str
    """The remark given with the change."""
    blocker: str
    """Why the task is blocked; empty for one that is not."""
    boundaries: ReachedBoundaries
    """The stories and epics that the change completed."""


class TaskDependencyChanged(Detail, frozen=True, kw_only=True):
    """A task depends on another one from now on, or does not any more."""

    task_id: str
    depends_on_task_id: str
    """The other task."""
    dependency_type: str
    """``blocks``, ``requires`` or ``relates_to``; empty where it was removed."""


class TaskActivity(Detail, frozen=True, kw_only=True):
    """Something to remember about a task."""

    task_id: str
    activity_type: str
    """``note``, ``file_change``, ``decision``, ``progress``, ``summary``, or ``failed`` (a test)."""
    description: str
    """The text."""


class TestResults(Part, frozen=True, kw_only=True):
    """The results of a task's last tests, as they are stored."""

    __test__ = False  # Its name does not make it a test.

    passed: int | None
    """How many passed."""
    failed: int | None
    """How many failed."""
    failing_test: str
    """The first test that failed."""
    ran: bool | None
    """Whether the tests ran."""


class WipDecision(Part, frozen=True, kw_only=True):
    """A decision of a task's work."""

    decision: str
    """The decision."""
    reason: str
    """Why."""


class WipError(Part, frozen=True, kw_only=True):
    """An error of a task's work."""

    type: str
    """The kind of error."""
    file: str
    """The file."""
    message: str
    """The error."""


class WorkInProgress(Part, frozen=True, kw_only=True):
    """A task's work in progress as it is stored, and the patches that change it."""

    phase: str | UnsetType
    """The phase of the work."""
    next_step: str | UnsetType
    """The next step."""
    context: str
    """A note for the next agent."""
    test_results: Mapping[str, Any]
    """The results of the last tests."""
    last_commit: str
    """The last commit."""
    uncommitted_changes: bool | UnsetType
    """Whether the worktree has changes that are not committed."""
    files_modified: tuple[str, ...]
    """The files changed."""
    decisions: tuple[WipDecision, ...]
    """The decisions."""
    errors: tuple[WipError, ...]
    """The errors."""


class WipUpdated(Detail, frozen=True, kw_only=True):
    """A task's work in progress changed."""

    task_id: str
    patch: Mapping[str, Any]
    """The fields that were given."""
    phase: str | UnsetType
    """The phase of the work."""
    next_step: str | UnsetType
    """The next step."""
    test_results: Mapping[str, Any]
    """The results of the last tests."""
    uncommitted_changes: bool | UnsetType
    """Whether the worktree has changes that are not committed."""
    files: tuple[str, ...]
    """The files changed, the first of them."""
    files_count: int
    """How many files were changed."""


class HandoffSet(Detail, frozen=True, kw_only=True):
    """A task was handed off."""

    task_id: str
    status: str
    """``PASS``, ``FAIL`` or ``BLOCKED``."""
    summary: str
    """The summary."""
    files: tuple[str, ...]
    """The files changed."""
    details: bool
    """Whether the handoff has details beside its summary."""


class HandoffCompacted(Detail, frozen=True, kw_only=True):
    """A story is done: the details of its tasks' handoffs were deleted."""

    story_id: str
    task_ids: tuple[str, ...]
    """The tasks."""
    decisions: Mapping[str, Any]
    """The decisions kept of each task's work."""


class HandoffArchived(Detail, frozen=True, kw_only=True):
    """An epic is done: the handoff is only in this row from now on."""

    task_id: str
    story_id: str | None
    """The task's story."""
    epic_id: str | None
    """The epic that is done."""
    status: str
    """``PASS``, ``FAIL`` or ``BLOCKED``."""
    summary: str
    """The summary."""
    files: tuple[str, ...]
    """The files changed."""
    created_at: str
    """When the task was handed off."""
    compacted_at: str | None
    """When the handoff's details were deleted."""


class BacklogPlanned(Detail, frozen=True, kw_only=True):
    """An approved plan was added to the backlog."""

    proposal_id: str
    epics: tuple[str, ...]
    """The epics created, in the order of the plan."""
    stories: tuple[str, ...]
    """The stories created, in the order of the plan."""
    tasks: tuple[str, ...]
    """The tasks created, in the order of the plan."""
    dependencies: int
    """How many dependencies were added."""
    planned_by: str | UnsetType = UNSET
    """The model that wrote the plan, by its full name; absent for a plan that was written by hand."""
    edited: bool | UnsetType = UNSET
    """True where the user edited the model's plan before approving it."""
