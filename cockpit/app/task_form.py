"""Writing tasks, stories and epics: what their forms ask, and what of it goes into the backlog."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cockpit.app.front_matter import FormInvalid
from cockpit.app.project_work import EpicState, StoryState, Work
from cockpit.app.task_steps import PERSON
from cockpit.store.database import Tx
from cockpit.store.epics import PRIORITIES
from cockpit.store.tasks import Task
from cockpit.work import backlog
from cockpit.work.drafts import TASK_TYPES
from widgets.work_views import FieldView, FormView

Values = Mapping[str, str]

_BETWEEN = re.compile(r"[\s,]+")


@dataclass(frozen=True, slots=True)
class Draft:
    """A form and what keeps it: ``save`` gets the fields that the person changed."""

    view: FormView
    save: Callable[[Tx, Values], object]


def new_task(story_id: str = "") -> Draft:
    """A new task, of a story if one is given."""
    fields = _task_fields({"type": "feature", "story": story_id})

    def save(tx: Tx, values: Values) -> object:
        read = _task_values(values)
        title = read.pop("title", "")
        story = read.pop("story_id", story_id) or None
        made = backlog.create_task(tx, title, story_id=story, by=PERSON, **read)
        _depend(tx, made.task_id, (), _ids(values.get("waits_for", "")))
        return made

    return Draft(FormView("A new task", fields), save)


def change_task(work: Work, task: Task) -> Draft:
    """The task as it is, to be changed."""
    state = work.tasks.get(task.task_id)
    needs = [other for other, how in (state.needs if state else {}).items() if how != "relates_to"]
    fields = _task_fields(
        {
            "title": task.title,
            "type": task.task_type,
            "story": task.story_id or "",
            "estimate_hours": f"{task.estimate_hours:g}" if task.estimate_hours else "",
            "waits_for": ", ".join(needs),
            "packages": ", ".join(task.packages),
            "files": ", ".join(task.files),
            "description": task.description,
            "criteria": task.acceptance_criteria,
        }
    )

    def save(tx: Tx, values: Values) -> object:
        changed = backlog.update_task(tx, task.task_id, _task_values(values), by=PERSON)
        if "waits_for" in values:
            _depend(tx, task.task_id, needs, _ids(values["waits_for"]))
        return changed

    return Draft(FormView(f"{task.task_id} {task.title}", fields), save)


def new_story(epic_id: str = "") -> Draft:
    """A new story, of an epic if one is given."""

    def save(tx: Tx, values: Values) -> object:
        return backlog.create_story(
            tx,
            values.get("title", ""),
            epic_id=values.get("epic", epic_id).strip() or None,
            description=values.get("description", ""),
            by=PERSON,
        )

    return Draft(FormView("A new story", _story_fields({"epic": epic_id})), save)


def change_story(story: StoryState) -> Draft:
    """The story as it is, to be changed."""
    shown = {"title": story.title, "epic": story.epic_id, "description": story.description}

    def save(tx: Tx, values: Values) -> object:
        changes = {("epic_id" if name == "epic" else name): text for name, text in values.items()}
        return backlog.update_story(tx, story.story_id, changes, by=PERSON)

    return Draft(FormView(f"{story.story_id} {story.title}", _story_fields(shown)), save)


def new_epic() -> Draft:
    """A new epic."""

    def save(tx: Tx, values: Values) -> object:
        return backlog.create_epic(
            tx,
            values.get("title", ""),
            priority=values.get("priority", "P2"),
            description=values.get("description", ""),
            by=PERSON,
        )

    return Draft(FormView("A new epic", _epic_fields({"priority": "P2"})), save)


def change_epic(epic: EpicState) -> Draft:
    """The epic as it is, to be changed; a new priority re-orders the queue."""
    shown = {"title": epic.title, "priority": epic.priority, "description": epic.description}

    def save(tx: Tx, values: Values) -> object:
        return backlog.update_epic(tx, epic.epic_id, dict(values), by=PERSON)

    return Draft(FormView(f"{epic.epic_id} {epic.title}", _epic_fields(shown)), save)


def _task_fields(values: Values) -> tuple[FieldView, ...]:
    def field(name: str, label: str, **more: Any) -> FieldView:
        return FieldView(name, label, values.get(name, ""), **more)

    return (
        field("title", "Title", hint="what is to be done, in a line"),
        field("type", "Type", kind="choice", choices=TASK_TYPES),
        field("story", "Story", hint="the id of a story, or nothing"),
        field("estimate_hours", "Estimate", hint="in hours"),
        field("waits_for", "Waits for", hint="ids of tasks, with commas between"),
        field("packages", "Packages", hint="what it will touch, with commas between"),
        field("files", "Files", hint="paths that it will touch, with commas between"),
        field("description", "Description", kind="text"),
        field("criteria", "Done when", kind="text"),
    )


def _story_fields(values: Values) -> tuple[FieldView, ...]:
    return (
        FieldView("title", "Title", values.get("title", ""), hint="what it gives to whom"),
        FieldView("epic", "Epic", values.get("epic", ""), hint="the id of an epic, or nothing"),
        FieldView("description", "Description", values.get("description", ""), kind="text"),
    )


def _epic_fields(values: Values) -> tuple[FieldView, ...]:
    return (
        FieldView("title", "Title", values.get("title", ""), hint="what the stories add up to"),
        FieldView(
            "priority", "Priority", values.get("priority", ""), kind="choice", choices=PRIORITIES
        ),
        FieldView("description", "Description", values.get("description", ""), kind="text"),
    )


def _task_values(values: Values) -> dict[str, Any]:
    """The fields of the backlog in what the form holds. Raises :class:`FormInvalid`."""
    names = {"type": "task_type", "story": "story_id", "criteria": "acceptance_criteria"}
    read: dict[str, Any] = {}
    for name, text in values.items():
        if name in ("packages", "files"):
            read[name] = tuple(part.strip() for part in text.split(",") if part.strip())
        elif name == "estimate_hours":
            read["estimate_hours"] = _hours(text)
        elif name != "waits_for":
            read[names.get(name, name)] = text.strip() if name == "story" else text
    return read


def _hours(text: str) -> float:
    """Hours; none at all where the estimate was taken out."""
    try:
        return float(text.replace(",", ".") if text.strip() else 0)
    except ValueError:
        raise FormInvalid(f"The estimate is {text[:40]!r}; write a number of hours.") from None


def _ids(text: str) -> list[str]:
    return [each for each in _BETWEEN.split(text) if each]


def _depend(tx: Tx, task_id: str, before: list[str] | tuple[str, ...], after: list[str]) -> None:
    """Let the task wait for exactly the tasks of ``after``; they may be written as people do."""
    from cockpit.store.numbering import TASK, read_id

    wanted = [read_id(TASK, each) for each in after]
    for other in wanted:
        if other not in before:
            backlog.add_dependency(tx, task_id, other, by=PERSON)
    for other in before:
        if other not in wanted:
            backlog.remove_dependency(tx, task_id, other, by=PERSON)
