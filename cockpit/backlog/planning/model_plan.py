"""A model's plan, read from the arguments of its tool: checked strictly, each fault in words for the model.

See ``docs/reference/plans.md``, plans by a model.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from cockpit.act.tool_payloads import PlanTask, ProposePlan
from cockpit.backlog import validation
from cockpit.backlog.planning.parse_plan import LONGEST
from cockpit.backlog.planning.plan import (
    Plan,
    PlanInvalid,
    PlannedEpic,
    PlannedStory,
    PlannedTask,
    Wait,
    find_circle,
)
from cockpit.backlog.planning.task_marks import is_path
from cockpit.backlog.validation import BacklogInvalid
from cockpit.core.read_record import InvalidRecord, read_record

MOST_TASKS = 100
"""Tasks of a model's plan; more than this is not a plan that anybody reads."""
_OPEN = ("todo", "in_progress", "review", "blocked")
_MOST_OPEN = 5_000
_WORD = re.compile(r"\w+")
_BACKLOG_ID = re.compile(r"T-?(\d{1,9})", re.IGNORECASE)
_NUMBER = re.compile(r"#?(\d{1,4})")


def read_model_plan(
    connection: sqlite3.Connection, arguments: Mapping[str, Any], types: Collection[str]
) -> Plan:
    """Return the plan that a model proposes; ``types`` are those of tasks.

    Raises :class:`PlanInvalid`, which names the task and says what to write, for too many tasks, an unknown
    type, a dependency on nothing or in a circle, a path outside the project, and a task that is in the plan
    or among the open tasks of the backlog already.
    """
    try:
        proposed = read_record(ProposePlan, dict(arguments), name="the plan")
    except InvalidRecord as error:
        raise PlanInvalid(str(error)) from error
    if not proposed.tasks:
        raise PlanInvalid("The plan has no task.")
    if len(proposed.tasks) > MOST_TASKS:
        raise PlanInvalid(
            f"The plan has {len(proposed.tasks)} tasks and may have {MOST_TASKS}. Plan the first part of the"
            " work, or make the tasks larger."
        )
    stories = list(
        dict.fromkeys(_title(task.story) for task in proposed.tasks if task.story.strip())
    )
    tasks = tuple(
        _read_task(number, task, types, stories)
        for number, task in enumerate(proposed.tasks, start=1)
    )
    length = sum(len(task.description) + len(task.acceptance_criteria) for task in tasks)
    if length > LONGEST:
        raise PlanInvalid(
            f"The plan's texts have {length:,} characters and may have {LONGEST:,}. Say less of each task."
        )
    refuse_doubles(connection, tasks)
    waits = tuple(
        wait
        for place, task in enumerate(proposed.tasks)
        for wait in _read_waits(connection, place, task, len(tasks))
    )
    if circle := find_circle(tasks, waits):
        raise PlanInvalid(f"These tasks would wait for each other: {circle}. Take one `after` out.")
    epic = _title(proposed.epic) if proposed.epic.strip() and stories else ""
    return Plan(
        (PlannedEpic(epic),) if epic else (),
        tuple(PlannedStory(title, epic=0 if epic else None) for title in stories),
        tasks,
        waits,
        (" ".join(proposed.notes.split()),) if proposed.notes.strip() else (),
    )


def _read_task(
    number: int, task: PlanTask, types: Collection[str], stories: Sequence[str]
) -> PlannedTask:
    try:
        title = validation.title(task.title)
        validation.task_type(task.task_type, types)
        description = validation.text("The description", task.description)
        files = validation.paths("files", task.files)
        checks = [" ".join(check.split()) for check in task.acceptance if check.strip()]
        acceptance = validation.text("acceptance", "\n".join(f"- {check}" for check in checks))
    except BacklogInvalid as error:
        raise PlanInvalid(f"Task {number}: {error}") from error
    if not checks:
        raise PlanInvalid(f"Task {number}: acceptance is empty. Say what shows that it is done.")
    for path in files:
        if not is_path(path):
            raise PlanInvalid(
                f"Task {number}: {path[:80]!r} is not a path within the project, such as src/auth.py."
            )
    return PlannedTask(
        number=number,
        title=title,
        task_type=task.task_type,
        description=description,
        acceptance_criteria=acceptance,
        files=files,
        story=stories.index(_title(task.story)) if task.story.strip() else None,
        line=number,
    )


def _title(text: str) -> str:
    try:
        return validation.title(text)
    except BacklogInvalid as error:
        raise PlanInvalid(str(error)) from error


def _read_waits(
    connection: sqlite3.Connection, place: int, task: PlanTask, count: int
) -> list[Wait]:
    waits: dict[Wait, None] = {}
    for written in task.after:
        name = written.strip()
        if (number := _NUMBER.fullmatch(name)) is not None:
            on = int(number[1]) - 1
            if not 0 <= on < count or on == place:
                raise PlanInvalid(
                    f"Task {place + 1}: it cannot wait for {name}; the other tasks are 1 to {count}."
                )
            waits[Wait(place, on)] = None
        elif (existing_id := _BACKLOG_ID.fullmatch(name)) is not None:
            row = connection.execute(
                "SELECT task_id FROM tasks WHERE number=?", (int(existing_id[1]),)
            ).fetchone()
            if row is None:
                raise PlanInvalid(
                    f"Task {place + 1}: there is no {name} in the backlog to wait for."
                )
            waits[Wait(place, task_id=str(row[0]))] = None
        else:
            raise PlanInvalid(
                f"Task {place + 1}: `after` is {name[:60]!r}; write the number of a task of this plan, such"
                ' as "1", or an id of the backlog, such as "T-9".'
            )
    return list(waits)


def refuse_doubles(connection: sqlite3.Connection, tasks: Sequence[PlannedTask]) -> None:
    """Raise :class:`PlanInvalid` for a task that is in the plan twice, or open in the backlog."""
    marks = ",".join("?" * len(_OPEN))
    rows = connection.execute(
        f"SELECT title, task_id FROM tasks WHERE status IN ({marks}) ORDER BY number DESC LIMIT ?",  # noqa: S608 - placeholders
        (*_OPEN, _MOST_OPEN),
    )
    existing = {_words(title): str(task_id) for title, task_id in rows}
    planned: dict[tuple[str, ...], int] = {}
    for task in tasks:
        words = _words(task.title)
        if words in existing:
            raise PlanInvalid(
                f"Task {task.number} is in the backlog already: {existing[words]} has the title"
                f" {task.title[:80]!r}. Leave it out; other tasks may wait for {existing[words]}."
            )
        if words in planned:
            raise PlanInvalid(
                f"Tasks {planned[words]} and {task.number} have the same title {task.title[:80]!r}."
            )
        planned[words] = task.number


def _words(title: str) -> tuple[str, ...]:
    """Return what of a title is compared: its words, whatever their case and punctuation."""
    words = tuple(_WORD.findall(title.casefold()))
    return words or (title,)
