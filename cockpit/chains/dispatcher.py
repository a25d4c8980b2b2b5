"""Who does the tasks of a chain: this machine, or workers of any machine.

See ``docs/reference/remote-workers.md``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Protocol

from cockpit.chains.remote.scale_settings import ScaleSettings
from cockpit.store.chains.chains import Chain
from cockpit.tasks.run_task import run_task
from cockpit.tasks.task_context import TaskContext, TaskOutcome


class Dispatcher(Protocol):
    """Does tasks, or has them done."""

    @property
    def at_once(self) -> int | None:
        """The most tasks that it takes at the same time; None: as many as the chain's batches have."""

    async def run(self, context: TaskContext, task_id: str) -> TaskOutcome:
        """Run a task, or resume it, as :func:`~cockpit.tasks.run_task.run_task` does."""


class LocalDispatcher:
    """Does each task in this process."""

    at_once: int | None = None

    async def run(self, context: TaskContext, task_id: str) -> TaskOutcome:
        """As :func:`~cockpit.tasks.run_task.run_task`."""
        return await run_task(context, task_id)


@asynccontextmanager
async def open_dispatcher(
    scale: ScaleSettings, context: TaskContext, chain: Chain, say: Callable[[str], None]
) -> AsyncIterator[Dispatcher]:
    """Open the dispatcher of the settings. Raises ``QueueUnreachable``."""
    if scale.backend == "local":
        yield LocalDispatcher()
        return
    from cockpit.chains.remote.coordinator import open_coordinator

    async with open_coordinator(scale, context, chain, say) as coordinator:
        yield coordinator
