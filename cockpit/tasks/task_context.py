"""What doing a task needs: where it happens, how it is decided, and what came of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from cockpit.backlog.completion import BeforeDecay
from cockpit.backlog.work_settings import WorkSettings
from cockpit.core.project_paths import ProjectPaths
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.db.database import Store

__all__ = ["EMBEDDED", "TaskContext", "TaskOutcome", "WorkSettings"]

EMBEDDED = "embedded"
"""The runner that is cockpit's own engine."""


@dataclass(frozen=True, slots=True)
class TaskContext:
    """One chain session's place of work. ``place`` is the person's checkout; ``chain_branch`` what
    tasks begin from and are merged into; ``approve`` the approval policy of the roles' sessions;
    ``runner`` who runs them (None: :data:`EMBEDDED`).

    ``stop``: the step that is under way is finished, and no other begun; ``pressed`` is asked before
    each whether it is to be as if that were set. ``before_decay`` sees the handoffs of what a task
    completes while they are whole.
    """

    store: Store
    place: ProjectPaths
    settings: RuntimeSettings
    chain_id: str
    ordinal: int
    chain_branch: str
    approve: str
    model: str | None = None
    runner: str | None = None
    work: WorkSettings = field(default_factory=WorkSettings)
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    pressed: Callable[[], bool] | None = None
    before_decay: BeforeDecay | None = None

    def rests(self) -> bool:
        """Whether no further step is begun."""
        return self.stop.is_set() or (self.pressed is not None and self.pressed())


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """How a task stands after :func:`~cockpit.tasks.run_task.run_task`.

    ``status`` is ``done``, ``blocked`` or ``interrupted`` (it is taken up again where it stands);
    ``summary`` is its handoff's. ``tokens`` and ``cost_usd`` were spent in this call;
    ``dropped_share`` (0 to 1) is the largest share of utility that a packet of it had to leave out.
    """

    task_id: str
    status: str
    summary: str
    tokens: int = 0
    dropped_share: float = 0.0
    cost_usd: float = 0.0
    merged_commit: str | None = None
    reason: str = ""
