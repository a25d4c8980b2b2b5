"""Estimating the open tasks of a backlog, an epic or a story: each task, all of them, and how long it takes.

See ``docs/reference/planner.md``, tasks and chains.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from typing import Any

from msgspec import Struct

from cockpit.decide.planner.estimate_total import add_up, schedule
from cockpit.loop.planner.estimate_session import estimate_kind
from cockpit.store.backlog import dependencies, tasks
from cockpit.store.backlog.queue_scope import Scope
from cockpit.store.backlog.tasks import Task
from cockpit.store.journal.details.estimates import Expected, Range

OPEN = ("todo", "in_progress", "review")
"""The statuses of tasks that a chain still does."""
MOST_TASKS = 2_000


class EstimatedTask(Struct, frozen=True):
    """One task with its estimate; ``waits`` are ids of open tasks of the scope that it waits for."""

    task: Task
    estimate: Expected
    waits: tuple[str, ...]


class EstimatedScope(Struct, frozen=True):
    """The open tasks of a scope with their estimates."""

    tasks: tuple[EstimatedTask, ...]
    total: Expected
    blocked: int
    """Tasks of the scope that are blocked: a chain does none of them, and they are not estimated."""
    left_out: int
    """Tasks beyond :data:`MOST_TASKS`."""

    def elapsed_ms(self, workers: int) -> Range:
        """Return the milliseconds that ``workers`` need, as the dependencies allow.

        The range is that of the work: tasks that take longer keep those waiting that need them.
        """
        places = {each.task.task_id: place for place, each in enumerate(self.tasks)}
        waits = [[places[name] for name in each.waits if name in places] for each in self.tasks]
        likely = schedule([each.estimate.work_ms.likely for each in self.tasks], waits, workers)
        work = self.total.work_ms
        if work.likely <= 0:
            return Range(low=likely, likely=likely, high=likely)
        low, high = likely * work.low / work.likely, likely * work.high / work.likely
        return Range(low=low, likely=likely, high=high)


def estimate_scope(
    connection: sqlite3.Connection,
    scope: Scope,
    model: str,
    usd_a_token: float | None,
    *,
    named: Collection[str] = (),
) -> EstimatedScope:
    """Estimate the open tasks of ``scope``; with ``named``, exactly these tasks.

    Raises ``NotFound`` for a task that there is not.
    """
    if named:
        chosen = [tasks.load(connection, name) for name in dict.fromkeys(named)]
        blocked = left_out = 0
    else:
        terms: dict[str, Any] = {} if scope.kind == "all" else {f"{scope.kind}_id": scope.scope_id}
        listed = [
            task
            for status in OPEN
            for task in tasks.select(connection, limit=MOST_TASKS, status=status, **terms)
        ]
        chosen = sorted(listed, key=lambda task: task.number)[:MOST_TASKS]
        count = sum(tasks.count(connection, status=status, **terms) for status in OPEN)
        left_out = count - len(chosen)
        blocked = tasks.count(connection, status="blocked", **terms)
    estimates = [
        estimate_kind(connection, "task", task.task_type, model, usd_a_token) for task in chosen
    ]
    ids = {task.task_id for task in chosen}
    waits = _select_waits(connection, ids)
    return EstimatedScope(
        tuple(
            EstimatedTask(task, estimate, tuple(waits.get(task.task_id, ())))
            for task, estimate in zip(chosen, estimates, strict=True)
        ),
        add_up(estimates),
        blocked,
        left_out,
    )


def _select_waits(connection: sqlite3.Connection, ids: Collection[str]) -> dict[str, list[str]]:
    waits: dict[str, list[str]] = {}
    for each in dependencies.select_all(connection):
        on = each.depends_on_task_id
        if each.dependency_type != "relates_to" and each.task_id in ids and on in ids:
            waits.setdefault(each.task_id, []).append(on)
    return waits
