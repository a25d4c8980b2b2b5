"""What running a task needs, and its outcome. See ``docs/reference/backlog.md``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec import Struct, field

from cockpit.backlog.story_completion import BeforeDecay
from cockpit.backlog.work_settings import WorkSettings
from cockpit.core.project_paths import ProjectPaths
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.db.database import Store

__all__ = ["TaskContext", "TaskOutcome", "WorkSettings"]


class TaskContext(Struct, frozen=True):
    """Where and how a worker runs its tasks."""

    store: Store
    place: ProjectPaths
    """The user's checkout."""
    settings: RuntimeSettings
    chain_id: str
    """Empty for a task that runs without a chain."""
    ordinal: int
    """The worker's number within its chain."""
    chain_branch: str
    """The branch that tasks start from and are merged into."""
    approve: str
    """The approval policy of the roles' sessions."""
    model: str | None = None
    runner: str | None = None
    """Who runs the roles: an external agent by its configured name; None is the built-in agent."""
    work: WorkSettings = field(default_factory=WorkSettings)
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    """When set, running steps finish and no further step starts."""
    base_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while the tests of the chain's base run, so that they run once."""
    must_hand_over: Callable[[], bool] | None = None
    """Called before each step; True stops the task there as ``stop`` does."""
    stops_before_merge: bool = False
    """Whether another process merges and ends the task: this one does the steps before that."""
    before_decay: BeforeDecay | None = None
    """Sees the handoffs of completed stories and epics before they decay."""

    def should_stop(self) -> bool:
        """Whether no further step may start."""
        return self.stop.is_set() or (self.must_hand_over is not None and self.must_hand_over())


class TaskOutcome(Struct, frozen=True):
    """The result of one call of :func:`~cockpit.tasks.run_task.run_task`."""

    task_id: str
    status: str
    """``done``, ``blocked``, ``ready`` (its steps before the merge are over), ``interrupted`` (it resumes
    at its current step), or ``failed`` (it broke off for a reason outside the task)."""
    summary: str
    """The handoff's summary."""
    tokens: int = 0
    """Tokens spent in this call."""
    cost_usd: float = 0.0
    """US dollars spent in this call."""
    merged_commit: str | None = None
    reason: str = ""
    """Why it is not done, as a short code or text."""
