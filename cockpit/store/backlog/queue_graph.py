"""The dependencies of the queue as a graph: which tasks wait, and which a task unblocks.

Rows are read as the walk reaches them, or all at once when most will be needed. Specified in
``docs/reference/backlog.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from cockpit.store.backlog.epics_and_stories import SETTLED

MOST_UNBLOCKED: Final = 99
"""The highest count of unblocked tasks; the score has no room for more."""

_PREREQUISITES = (
    "SELECT t.task_id, status FROM task_dependencies d JOIN tasks t ON t.task_id=d.depends_on_task_id"
    " WHERE d.task_id=? AND dependency_type <> 'relates_to'"
)
_DEPENDENTS = (
    "SELECT t.task_id, status FROM task_dependencies d JOIN tasks t ON t.task_id=d.task_id"
    " WHERE d.depends_on_task_id=? AND dependency_type <> 'relates_to'"
)


class DependencyGraph:
    """The tasks and dependencies as of this transaction.

    Only dependencies that make a task wait count; ``relates_to`` does not.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._settled: dict[str, bool] = {}
        self._prerequisites: dict[str, list[str]] = {}
        self._dependents: dict[str, list[str]] = {}
        self._whole = False

    def read_whole(self) -> None:
        """Read every task and dependency: for many tasks faster than one by one."""
        if self._whole:
            return
        self._whole = True
        for task_id, status in self._connection.execute("SELECT task_id, status FROM tasks"):
            self._settled[task_id] = status in SETTLED
        self._prerequisites = {task_id: [] for task_id in self._settled}
        self._dependents = {task_id: [] for task_id in self._settled}
        for task_id, other in self._connection.execute(
            "SELECT task_id, depends_on_task_id FROM task_dependencies"
            " WHERE dependency_type <> 'relates_to'"
        ):
            self._prerequisites[task_id].append(other)
            self._dependents[other].append(task_id)

    def is_settled(self, task_id: str) -> bool:
        """Tell whether a task that a walk reached is done or archived."""
        return self._settled[task_id]

    def prerequisites(self, task_id: str) -> list[str]:
        """The tasks that the task depends on."""
        return self._ends(self._prerequisites, _PREREQUISITES, task_id)

    def dependents(self, task_id: str) -> list[str]:
        """The tasks that depend on the task."""
        return self._ends(self._dependents, _DEPENDENTS, task_id)

    def count_waiting(self, task_id: str) -> int:
        """Count the open tasks that wait for this one, directly or through others.

        Stops at :data:`MOST_UNBLOCKED`.
        """
        seen = {task_id}
        level = [task_id]
        while level and len(seen) <= MOST_UNBLOCKED:
            reached = []
            for open_task in level:
                for other in self.dependents(open_task):
                    if other not in seen and not self._settled[other]:
                        seen.add(other)
                        reached.append(other)
            level = reached
        return min(len(seen) - 1, MOST_UNBLOCKED)

    def select_affected(self, task_ids: Iterable[str]) -> set[str]:
        """Find the open tasks whose :meth:`count_waiting` may change with these tasks.

        A task further away than :data:`MOST_UNBLOCKED` steps has so many in between that its count
        stays at the maximum.
        """
        seen = set(task_ids)
        level, affected = list(seen), set[str]()
        for _ in range(MOST_UNBLOCKED + 1):
            reached = []
            for open_task in level:
                for other in self.prerequisites(open_task):
                    if other not in seen and not self._settled[other]:
                        seen.add(other)
                        affected.add(other)
                        reached.append(other)
            level = reached
            if not level:
                break
        return affected

    def open_prerequisites(self, task_ids: Iterable[str]) -> set[str]:
        """These open tasks and every open task that they wait for, directly or through others."""
        seen = set(task_ids)
        stack = list(seen)
        while stack:
            for other in self.prerequisites(stack.pop()):
                if other not in seen and not self._settled[other]:
                    seen.add(other)
                    stack.append(other)
        return seen

    def sort_dependents_first(self, task_ids: Sequence[str]) -> list[str]:
        """Order the tasks so that each comes after those among them that depend on it."""
        among = set(task_ids)
        entered, ordered = set[str](), list[str]()
        stack = [(task_id, False) for task_id in reversed(task_ids)]
        while stack:
            task_id, expanded = stack.pop()
            if expanded:
                ordered.append(task_id)
            elif task_id not in entered:
                entered.add(task_id)
                stack.append((task_id, True))
                stack += [
                    (other, False)
                    for other in self.dependents(task_id)
                    if other in among and other not in entered
                ]
        return ordered

    def all_dependents(self, task_id: str) -> set[str]:
        """The task and every task that depends on it, directly or through others."""
        return _reached(task_id, self.dependents)

    def all_prerequisites(self, task_id: str) -> set[str]:
        """The task and every task that it depends on, directly or through others."""
        return _reached(task_id, self.prerequisites)

    def _ends(self, cache: dict[str, list[str]], sql: str, task_id: str) -> list[str]:
        ends = cache.get(task_id)
        if ends is None:
            ends = cache[task_id] = []
            for other, status in self._connection.execute(sql, (task_id,)):
                ends.append(other)
                self._settled[other] = status in SETTLED
        return ends


def _reached(start: str, neighbours: Callable[[str], list[str]]) -> set[str]:
    seen, stack = {start}, [start]
    while stack:
        for other in neighbours(stack.pop()):
            if other not in seen:
                seen.add(other)
                stack.append(other)
    return seen
