"""A plan's records: epics, stories, tasks and their dependencies.

Places are positions in the plan's own tuples; tasks get backlog ids when the plan is added. See
``docs/reference/plans.md``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from cockpit.core.errors import CockpitError
from cockpit.core.read_record import convert

PLAN_ACTION = "backlog_plan"
"""The type of the action of a proposed plan."""
MOST_TASKS = 500
"""Tasks of one plan; more than this is too much to review at once."""


class PlanInvalid(CockpitError):
    """The plan cannot be read or added to the backlog; the message names the line."""

    code = "usage"


class PlannedEpic(Struct, frozen=True):
    """An epic; ``line`` is its line in the text, from 1."""

    title: str
    description: str = ""
    priority: str = "P2"
    line: int = 0


class PlannedStory(Struct, frozen=True):
    """``epic`` is the place of its epic; None: it belongs to none."""

    title: str
    description: str = ""
    epic: int | None = None
    line: int = 0


class PlannedTask(Struct, frozen=True):
    """``number`` is its ``#`` in the plan; ``story`` the place of its story, None without one.

    ``done``: its box was ticked, so it is in the backlog as done.
    """

    number: int
    title: str
    task_type: str = "feature"
    description: str = ""
    acceptance_criteria: str = ""
    estimate_hours: float | None = None
    files: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    story: int | None = None
    done: bool = False
    line: int = 0


class Wait(Struct, frozen=True):
    """The task at ``task`` depends on the one at ``on``, or on the backlog's task ``task_id``."""

    task: int
    on: int | None = None
    task_id: str = ""
    kind: str = "blocks"


class Plan(Struct, frozen=True):
    """A plan, which is added to the backlog as a whole. ``notes`` name text that is left out."""

    epics: tuple[PlannedEpic, ...]
    stories: tuple[PlannedStory, ...]
    tasks: tuple[PlannedTask, ...]
    waits: tuple[Wait, ...]
    notes: tuple[str, ...] = ()

    def body(self) -> dict[str, Any]:
        """Return the plan as JSON values; :func:`read_body` reads them back."""
        body: dict[str, Any] = msgspec.to_builtins(self)
        del body["notes"]
        return body

    def counted(self) -> str:
        """``1 epic, 3 stories, 12 tasks``."""
        parts = [
            (len(self.epics), "epic", "epics"),
            (len(self.stories), "story", "stories"),
            (len(self.tasks), "task", "tasks"),
        ]
        return ", ".join(f"{n} {singular if n == 1 else many}" for n, singular, many in parts if n)


def read_body(body: Any) -> Plan:
    """The plan of a :meth:`Plan.body`. Raises :class:`PlanInvalid`."""
    try:
        return convert({**body, "notes": []}, Plan)
    except (msgspec.ValidationError, TypeError) as error:
        raise PlanInvalid(f"What is kept of the plan cannot be read: {error}.") from error


class PlanEmpty(PlanInvalid):
    """The text has no task: it is not a written plan."""


def refuse_cycles(tasks: Sequence[PlannedTask], waits: Iterable[Wait]) -> None:
    """Raise :class:`PlanInvalid` where tasks of the plan would wait for each other, naming them."""
    path = _circle(tasks, waits)
    if path:
        raise PlanInvalid(
            f"Line {tasks[path[0]].line}: these tasks would wait for each other: {_names(tasks, path)} (each"
            " waits for the next). Take one of the dependencies out."
        )


def find_circle(tasks: Sequence[PlannedTask], waits: Iterable[Wait]) -> str:
    """Return the tasks that would wait for each other, in words; '' where there are none."""
    return _names(tasks, _circle(tasks, waits))


def _names(tasks: Sequence[PlannedTask], path: Sequence[int]) -> str:
    return " → ".join(f"#{tasks[place].number} {tasks[place].title}" for place in path)


def _circle(tasks: Sequence[PlannedTask], waits: Iterable[Wait]) -> list[int]:
    after: dict[int, list[int]] = {}
    for wait in waits:
        if wait.on is not None and wait.kind != "relates_to":
            after.setdefault(wait.task, []).append(wait.on)
    finished: set[int] = set()
    for start in range(len(tasks)):
        path = _find_cycle(start, after, finished)
        if path:
            return path
    return []


def _find_cycle(start: int, after: dict[int, list[int]], finished: set[int]) -> list[int]:
    """Return a path from a task back to itself, that task first and last; empty for none."""
    if start in finished:
        return []
    path, rest = [start], [iter(after.get(start, ()))]
    while path:
        following = next(rest[-1], None)
        if following is None:
            finished.add(path.pop())
            rest.pop()
        elif following in path:
            return [*path[path.index(following) :], following]
        elif following not in finished:
            path.append(following)
            rest.append(iter(after.get(following, ())))
    return []
