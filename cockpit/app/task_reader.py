"""What the journal does not hold of a task, read from the store beside the screen."""

from __future__ import annotations

import sqlite3
from functools import partial

from cockpit.app.projection.task_detail import Told
from cockpit.backlog import task_form
from cockpit.store.backlog import handoffs, task_activity, tasks, work_queue
from cockpit.store.backlog.handoffs import Handoff
from cockpit.store.backlog.tasks import Task
from cockpit.store.backlog.work_queue import Queued
from cockpit.store.db.database import Store

ACTIVITY_MOST = 200
"""Rows of activity that are shown."""

QUEUE_MOST = 500
"""Tasks of the queue that are shown."""


async def told(store: Store, task_id: str) -> Told:
    """All of a task that is shown. Raises ``NotFound`` and the store's other errors."""
    return await store.read(partial(_told, task_id=task_id))


def _told(connection: sqlite3.Connection, task_id: str) -> Told:
    return Told(
        tasks.load(connection, task_id),
        task_activity.select_for_task(connection, task_id, ACTIVITY_MOST),
        task_activity.select_failures(connection, task_id),
        handoffs.find(connection, task_id),
    )


async def task(store: Store, task_id: str) -> tuple[Task, tuple[str, ...]]:
    """A task's record, and what it waits for. Raises ``NotFound`` and the store's other errors."""
    return await store.read(lambda c: (tasks.load(c, task_id), task_form.waits_for(c, task_id)))


async def handoff(store: Store, task_id: str) -> Handoff | None:
    """What the task handed over, with its details where they are kept."""
    return await store.read(lambda connection: handoffs.find(connection, task_id))


async def queue(store: Store) -> list[Queued]:
    """The queue in its order, at most :data:`QUEUE_MOST` of it."""
    return await store.read(lambda connection: work_queue.select(connection, limit=QUEUE_MOST))
