"""Details of the run of one task: its worktree, its steps and its roles."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from cockpit.store.journal.details.detail import Detail


class WorktreeState(Detail, frozen=True, kw_only=True):
    """A git worktree of a task or a chain was made, or has another status."""

    name: str
    """The worktree's name."""
    task_id: str | None
    """The task; none for a chain's own worktree."""
    chain_id: str
    path: str
    """The worktree's folder."""
    branch: str
    """Its branch."""
    base_commit: str
    """The commit that it started from."""
    status: str
    """``active``, ``merged``, ``conflict``, ``kept`` or ``removed``."""
    merged_commit: str | None
    """The commit that merged it."""
    conflicts: tuple[str, ...]
    """The files that could not be merged."""
    unseen_changes: int | UnsetType = UNSET
    """Of one that is about to be made: how many changes in the user's checkout it does not contain."""


class TaskStep(Detail, frozen=True, kw_only=True):
    """A step of a task's run."""

    task_id: str
    run: int
    """Which run of the task it is, from 1."""
    chain_id: str
    ordinal: int
    """The worker's number in its chain."""
    step: str
    """``implement``, ``test``, ``fix``, ``spec_review``, ``quality_review``, ``merge``, ``done`` or
    ``blocked``."""
    attempt: int
    """Which attempt of the step it is, from 1."""
    session_id: str
    """The role's session; empty without one."""
    outcome: str
    """The result of the step; empty while it runs."""
    summary: str
    """The result, for people to read."""


class TaskRunStarted(TaskStep, frozen=True, kw_only=True):
    """A task's run began with this step."""


class TaskRunStep(TaskStep, frozen=True, kw_only=True):
    """A step of a task's run began or ended."""


class TaskRunEnded(TaskStep, frozen=True, kw_only=True):
    """A task's run ended with this step."""


class RoleRestored(Detail, frozen=True, kw_only=True):
    """Tests that a role had changed by a command were restored."""

    task_id: str
    session_id: str | None
    """The role's session."""
    role: str
    """The role."""
    paths: tuple[str, ...]
    """The files restored."""


class TaskDelayed(Detail, frozen=True, kw_only=True):
    """A step broke off for a reason outside its task; it waits before it starts again."""

    chain_id: str
    ordinal: int
    """The worker's number in its chain."""
    task_id: str
    step: str
    """The step that broke off."""
    attempt: int
    """Which try of the step comes next: 2 after the first that broke off."""
    delay_s: float
    """The seconds that it waits."""
    starts_at: str
    """When it may start again."""
    reason: str
    """Why it broke off."""


class TaskTakenUp(Detail, frozen=True, kw_only=True):
    """A worker resumed a task that another worker had left."""

    chain_id: str
    ordinal: int
    """The worker's number in its chain."""
    task_id: str
    phase: str
    """The phase of the work in progress."""
    next_step: str
    """The next step."""
    message: str
    """The line shown, for example ``Resuming T-42 from: …``."""
