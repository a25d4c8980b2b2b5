"""Read the parts of a task that the journal does not contain, from the store, for the screens."""

from __future__ import annotations

import asyncio
import sqlite3
from functools import partial

from cockpit.app.state.task_detail import TaskRecord
from cockpit.backlog import task_form, task_type_names
from cockpit.core.project_paths import ProjectPaths
from cockpit.loop.planner.read_session_estimate import describe_task_estimate
from cockpit.store.backlog import handoffs, task_activity, tasks, work_queue
from cockpit.store.backlog.handoffs import Handoff
from cockpit.store.backlog.tasks import Task
from cockpit.store.backlog.work_queue import Queued
from cockpit.store.db.database import Store

ACTIVITY_MOST = 200
"""The number of activity rows shown."""

QUEUE_MOST = 500
"""The number of queued tasks shown."""


async def read_task_detail(store: Store, task_id: str) -> TaskRecord:
    """Return everything that the screen of a task shows. Raises ``NotFound`` and other store errors."""
    return await store.read(partial(_load_task_detail, task_id=task_id))


def _load_task_detail(connection: sqlite3.Connection, task_id: str) -> TaskRecord:
    return TaskRecord(
        tasks.load(connection, task_id),
        task_activity.select_for_task(connection, task_id, ACTIVITY_MOST),
        task_activity.select_failures(connection, task_id),
        handoffs.find(connection, task_id),
        describe_task_estimate(connection, task_id),
    )


async def read_task(store: Store, task_id: str) -> tuple[Task, tuple[str, ...]]:
    """Return a task and the tasks that it waits for. Raises ``NotFound`` and other store errors."""
    return await store.read(
        lambda connection: (
            tasks.load(connection, task_id),
            task_form.waits_for(connection, task_id),
        )
    )


async def read_task_types(place: ProjectPaths) -> tuple[str, ...]:
    """Return the types that a task can have, from the task-type files as they are now."""
    return await asyncio.to_thread(task_type_names.read_names, place.home)


async def read_handoff(store: Store, task_id: str) -> Handoff | None:
    """Return the handoff of a task, with its details if they are still stored."""
    return await store.read(lambda connection: handoffs.find(connection, task_id))


async def read_queue(store: Store) -> list[Queued]:
    """Return the first :data:`QUEUE_MOST` tasks of the queue, in order."""
    return await store.read(lambda connection: work_queue.select(connection, limit=QUEUE_MOST))
