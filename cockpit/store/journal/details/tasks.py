"""Details of the run of one task: its worktree, its steps and its roles."""

from __future__ import annotations

from cockpit.store.journal.details.detail import Detail


class TaskRunStep(Detail, frozen=True, kw_only=True):
    """A step of a task's run began or ended; with ``done`` or ``blocked`` the run is over."""

    task_id: str
    run: int
    """Which run of the task it is, from 1."""
    chain_id: str
    ordinal: int
    """The worker's number in its chain."""
    position: int
    """The step's number in its run; the run began with the first."""
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
