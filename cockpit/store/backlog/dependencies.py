"""What waits for what: dependencies between tasks, without cycles.

``blocks`` and ``requires`` make a task wait; ``relates_to`` only says that two belong together.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from cockpit.core.errors import CockpitError, NotFound
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.event_types import Action

TYPES = ("blocks", "requires", "relates_to")


_NAMED = 12
"""Tasks of a cycle that its message names; longer ones are shortened in the middle."""


class DependencyCycle(CockpitError):
    """The dependency would make tasks wait for each other; ``path`` names them, the first one twice."""

    code = "cycle"

    def __init__(self, path: tuple[str, ...]) -> None:
        shown = path if len(path) <= _NAMED else (*path[: _NAMED - 2], "…", *path[-2:])
        super().__init__(
            f"That would be a cycle: {' → '.join(shown)} (each waits for the next). Remove one of"
            f" these first, or make it relates_to, which makes nobody wait."
        )
        self.path = path


@dataclass(frozen=True, slots=True)
class Dependency:
    """``task_id`` depends on ``depends_on_task_id``; with how these two stand, and their titles."""

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
    """``task_id`` depends on the other task from now on; journals ``task.dependency_added``.

    Said again it changes the type, or nothing: False. Both tasks exist. Raises :class:`DependencyCycle`.
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
        Action.TASK_DEPENDENCY_ADDED,
        actor=by,
        detail={
            "task_id": task_id,
            "depends_on_task_id": depends_on_task_id,
            "dependency_type": dependency_type,
        },
    )
    return True


def remove(tx: Tx, task_id: str, depends_on_task_id: str, *, by: str) -> None:
    """Take a dependency back; journals ``task.dependency_removed``. Raises :class:`NotFound`."""
    deleted = tx.execute(
        "DELETE FROM task_dependencies WHERE task_id=? AND depends_on_task_id=?",
        (task_id, depends_on_task_id),
    )
    if deleted.rowcount == 0:
        raise NotFound(
            f"{task_id} does not depend on {depends_on_task_id};"
            f" `cockpit tasks show {task_id}` says what it depends on."
        )
    tx.journal(
        Action.TASK_DEPENDENCY_REMOVED,
        actor=by,
        detail={"task_id": task_id, "depends_on_task_id": depends_on_task_id},
    )


def select_prerequisites(connection: sqlite3.Connection, task_id: str) -> list[Dependency]:
    """What the task depends on."""
    rows = connection.execute(f"{_SELECT} WHERE d.task_id=? ORDER BY o.number", (task_id,))
    return [Dependency(*row) for row in rows]


def select_dependents(connection: sqlite3.Connection, task_id: str) -> list[Dependency]:
    """What depends on the task."""
    rows = connection.execute(
        f"{_SELECT} WHERE d.depends_on_task_id=? ORDER BY t.number", (task_id,)
    )
    return [Dependency(*row) for row in rows]


def select_all(connection: sqlite3.Connection) -> list[Dependency]:
    """Every dependency, in the order of the tasks."""
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
"""What a task waits for, and what waits for it."""


def _path(connection: sqlite3.Connection, start: str, end: str) -> tuple[str, ...]:
    """A way from ``start`` to ``end`` along what each waits for; empty: there is none.

    Looked for from both ends, on the side that was walked less: a new task, which nothing waits for
    yet, is at the end of no way, however long the chain before it is.
    """
    came: dict[bool, dict[str, str]] = {True: {start: ""}, False: {end: ""}}
    edges = {True: [start], False: [end]}
    while edges[True] and edges[False]:
        ahead = len(came[True]) <= len(came[False])
        following = []
        for task_id in edges[ahead]:
            for (other,) in connection.execute(_FOLLOWING[ahead], (task_id,)):
                if other in came[ahead]:
                    continue
                came[ahead][other] = task_id
                if other in came[not ahead]:
                    return (*reversed(_steps(came[True], other)), *_steps(came[False], other)[1:])
                following.append(other)
        edges[ahead] = following
    return ()


def _steps(came: dict[str, str], last: str) -> list[str]:
    """From ``last`` back to where the search began."""
    steps = [last]
    while came[steps[-1]]:
        steps.append(came[steps[-1]])
    return steps
