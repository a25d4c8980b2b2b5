"""What waits for what: dependencies between tasks, without cycles.

``blocks`` and ``requires`` make a task wait; ``relates_to`` only says that two belong together.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from cockpit.store.actions import Action
from cockpit.store.database import Tx
from cockpit.store.errors import CockpitError, NotFound

TYPES = ("blocks", "requires", "relates_to")


class Cycle(CockpitError):
    """The dependency would make tasks wait for each other; ``path`` names them, the first one twice."""

    code = "cycle"

    def __init__(self, path: tuple[str, ...]) -> None:
        super().__init__(
            f"That would be a cycle: {' → '.join(path)} (each waits for the next). Remove one of"
            f" these first, or write --type relates_to: that makes nobody wait."
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
    def waits(self) -> bool:
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

    Said again it changes the type, or nothing: False. Both tasks exist. Raises :class:`Cycle`.
    """
    known = tx.execute(
        "SELECT dependency_type FROM task_dependencies WHERE task_id=? AND depends_on_task_id=?",
        (task_id, depends_on_task_id),
    ).fetchone()
    if known is not None and known[0] == dependency_type:
        return False
    if task_id == depends_on_task_id:
        raise Cycle((task_id, task_id))
    if dependency_type != "relates_to":
        path = _path(tx.connection, depends_on_task_id, task_id)
        if path:
            raise Cycle((task_id, *path))
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
    gone = tx.execute(
        "DELETE FROM task_dependencies WHERE task_id=? AND depends_on_task_id=?",
        (task_id, depends_on_task_id),
    )
    if gone.rowcount == 0:
        raise NotFound(
            f"{task_id} does not depend on {depends_on_task_id};"
            f" `cockpit tasks show {task_id}` says what it depends on."
        )
    tx.journal(
        Action.TASK_DEPENDENCY_REMOVED,
        actor=by,
        detail={"task_id": task_id, "depends_on_task_id": depends_on_task_id},
    )


def of_task(connection: sqlite3.Connection, task_id: str) -> list[Dependency]:
    """What the task depends on."""
    found = connection.execute(f"{_SELECT} WHERE d.task_id=? ORDER BY o.number", (task_id,))
    return [Dependency(*row) for row in found]


def dependents(connection: sqlite3.Connection, task_id: str) -> list[Dependency]:
    """What depends on the task."""
    found = connection.execute(
        f"{_SELECT} WHERE d.depends_on_task_id=? ORDER BY t.number", (task_id,)
    )
    return [Dependency(*row) for row in found]


def listed(connection: sqlite3.Connection) -> list[Dependency]:
    """Every dependency, in the order of the tasks."""
    return [
        Dependency(*row) for row in connection.execute(f"{_SELECT} ORDER BY t.number, o.number")
    ]


def _path(connection: sqlite3.Connection, start: str, end: str) -> tuple[str, ...]:
    """The shortest way from ``start`` to ``end`` along what each waits for; empty: there is none."""
    came_from: dict[str, str] = {start: ""}
    level = [start]
    while level and end not in came_from:
        following = []
        for task_id in level:
            for (other,) in connection.execute(
                "SELECT depends_on_task_id FROM task_dependencies"
                " WHERE task_id=? AND dependency_type <> 'relates_to' ORDER BY depends_on_task_id",
                (task_id,),
            ):
                if other not in came_from:
                    came_from[other] = task_id
                    following.append(other)
        level = following
    if end not in came_from:
        return ()
    path = [end]
    while came_from[path[-1]]:
        path.append(came_from[path[-1]])
    return tuple(reversed(path))
