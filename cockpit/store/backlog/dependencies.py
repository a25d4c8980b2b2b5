"""Dependencies between tasks, without cycles.

``blocks`` and ``requires`` make a task wait; ``relates_to`` only links two tasks. Specified in
``docs/reference/backlog.md``.
"""

from __future__ import annotations

import sqlite3

from msgspec import Struct

from cockpit.core.errors import CockpitError, NotFound
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.backlog import TaskDependencyChanged

TYPES = ("blocks", "requires", "relates_to")


_NAMED = 12
"""Tasks that the message of a cycle names; a longer cycle is shortened in the middle."""


class DependencyCycle(CockpitError):
    """The dependency would make tasks wait for each other.

    ``path`` holds the tasks of the cycle, the first one twice.
    """

    code = "cycle"

    def __init__(self, path: tuple[str, ...]) -> None:
        shown = path if len(path) <= _NAMED else (*path[: _NAMED - 2], "…", *path[-2:])
        super().__init__(
            f"That would be a cycle: {' → '.join(shown)} (each waits for the next). Remove one of"
            " these dependencies first, or use relates_to, which makes no task wait."
        )
        self.path = path


class Dependency(Struct, frozen=True):
    """``task_id`` depends on ``depends_on_task_id``, with the status and title of both."""

    task_id: str
    depends_on_task_id: str
    dependency_type: str
    status: str
    depends_on_status: str
    title: str
    depends_on_title: str

    @property
    def is_waiting(self) -> bool:
        """Whether the task has to wait for the other one now."""
        return self.dependency_type != "relates_to" and self.depends_on_status not in (
            "done",
            "archived",
        )


_SELECT = (
    "SELECT d.task_id, depends_on_task_id, dependency_type, t.status, o.status, t.title, o.title"
    " FROM task_dependencies d JOIN tasks t ON t.task_id=d.task_id"
    " JOIN tasks o ON o.task_id=depends_on_task_id"
)


def add(
    tx: Tx, task_id: str, depends_on_task_id: str, dependency_type: str = "blocks", *, by: str
) -> bool:
    """Make ``task_id`` depend on the other task and journal it.

    Both tasks must exist. A dependency that exists gets the new type; returns False when nothing
    changed. Raises :class:`DependencyCycle`.
    """
    row = tx.execute(
        "SELECT dependency_type FROM task_dependencies WHERE task_id=? AND depends_on_task_id=?",
        (task_id, depends_on_task_id),
    ).fetchone()
    if row is not None and row[0] == dependency_type:
        return False
    if task_id == depends_on_task_id:
        raise DependencyCycle((task_id, task_id))
    if dependency_type != "relates_to":
        path = _path(tx.connection, depends_on_task_id, task_id)
        if path:
            raise DependencyCycle((task_id, *path))
    tx.execute(
        "INSERT INTO task_dependencies(task_id, depends_on_task_id, dependency_type, created_at)"
        " VALUES (?,?,?,?) ON CONFLICT DO UPDATE SET dependency_type=excluded.dependency_type",
        (task_id, depends_on_task_id, dependency_type, tx.now()),
    )
    tx.journal(
        TaskDependencyChanged(
            task_id=task_id, depends_on_task_id=depends_on_task_id, dependency_type=dependency_type
        ),
        actor=by,
    )
    return True


def remove(tx: Tx, task_id: str, depends_on_task_id: str, *, by: str) -> None:
    """Delete a dependency and journal it.

    Raises :class:`NotFound`.
    """
    deleted = tx.execute(
        "DELETE FROM task_dependencies WHERE task_id=? AND depends_on_task_id=?",
        (task_id, depends_on_task_id),
    )
    if deleted.rowcount == 0:
        raise NotFound(
            f"{task_id} does not depend on {depends_on_task_id};"
            f" `cockpit tasks {task_id}` lists its dependencies."
        )
    removed = TaskDependencyChanged(
        task_id=task_id, depends_on_task_id=depends_on_task_id, dependency_type=""
    )
    tx.journal(removed, actor=by)


def select_prerequisites(connection: sqlite3.Connection, task_id: str) -> list[Dependency]:
    """Read the dependencies of the task on others."""
    rows = connection.execute(f"{_SELECT} WHERE d.task_id=? ORDER BY o.number", (task_id,))
    return [Dependency(*row) for row in rows]


def select_dependents(connection: sqlite3.Connection, task_id: str) -> list[Dependency]:
    """Read the dependencies of others on the task."""
    rows = connection.execute(
        f"{_SELECT} WHERE d.depends_on_task_id=? ORDER BY t.number", (task_id,)
    )
    return [Dependency(*row) for row in rows]


def select_all(connection: sqlite3.Connection) -> list[Dependency]:
    """Read every dependency, in the order of the tasks."""
    return [
        Dependency(*row) for row in connection.execute(f"{_SELECT} ORDER BY t.number, o.number")
    ]


_FOLLOWING = {
    True: (
        "SELECT depends_on_task_id FROM task_dependencies"
        " WHERE task_id=? AND dependency_type <> 'relates_to' ORDER BY depends_on_task_id"
    ),
    False: (
        "SELECT task_id FROM task_dependencies"
        " WHERE depends_on_task_id=? AND dependency_type <> 'relates_to' ORDER BY task_id"
    ),
}
"""The SQL that walks one step: True to prerequisites, False to dependents."""


def _path(connection: sqlite3.Connection, start: str, end: str) -> tuple[str, ...]:
    """Find a way from ``start`` to ``end`` along prerequisites; empty when there is none.

    Searches from both ends and always extends the side that has visited fewer tasks: a new task has
    no dependents, so the search ends at once however long the chain of its prerequisites is.
    """
    origins: dict[bool, dict[str, str]] = {True: {start: ""}, False: {end: ""}}
    frontier = {True: [start], False: [end]}
    while frontier[True] and frontier[False]:
        ahead = len(origins[True]) <= len(origins[False])
        reached = []
        for task_id in frontier[ahead]:
            for (other,) in connection.execute(_FOLLOWING[ahead], (task_id,)):
                if other in origins[ahead]:
                    continue
                origins[ahead][other] = task_id
                if other in origins[not ahead]:
                    return (
                        *reversed(_steps(origins[True], other)),
                        *_steps(origins[False], other)[1:],
                    )
                reached.append(other)
        frontier[ahead] = reached
    return ()


def _steps(origins: dict[str, str], last: str) -> list[str]:
    """Return the tasks from ``last`` back to where the search began."""
    steps = [last]
    while origins[steps[-1]]:
        steps.append(origins[steps[-1]])
    return steps
