"""Writing tasks, stories and epics: what their forms ask, and what of it goes into the backlog."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cockpit.app.actions.task_writes import PERSON
from cockpit.app.projection.backlog import EpicState, StoryState
from cockpit.backlog import service, task_form
from cockpit.store.backlog.epics_and_stories import PRIORITIES
from cockpit.store.backlog.tasks import Task
from cockpit.store.db.transaction import Tx
from widgets.work.work_views import FieldView, FormView

Values = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Draft:
    """A form and what keeps it: ``save`` gets the fields that the person changed."""

    view: FormView
    save: Callable[[Tx, Values], object]


def new_task(story_id: str = "") -> Draft:
    """A new task, of a story if one is given."""
    fields = _task_fields({"type": "feature", "story": story_id})

    def save(tx: Tx, values: Values) -> object:
        return task_form.create_task_from_form(tx, values, story_id=story_id, by=PERSON)

    return Draft(FormView("A new task", fields), save)


def change_task(task: Task, needs: tuple[str, ...]) -> Draft:
    """The task as it is, which waits for ``needs``, to be changed."""

    def save(tx: Tx, values: Values) -> object:
        return task_form.update_task_from_form(tx, task.task_id, values, by=PERSON)

    fields = _task_fields(task_form.form_texts(task, needs))
    return Draft(FormView(f"{task.task_id} {task.title}", fields), save)


def new_story(epic_id: str = "") -> Draft:
    """A new story, of an epic if one is given."""

    def save(tx: Tx, values: Values) -> object:
        return service.create_story(
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
        return service.update_story(tx, story.story_id, changes, by=PERSON)

    return Draft(FormView(f"{story.story_id} {story.title}", _story_fields(shown)), save)


def new_epic() -> Draft:
    """A new epic."""

    def save(tx: Tx, values: Values) -> object:
        return service.create_epic(
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
        return service.update_epic(tx, epic.epic_id, dict(values), by=PERSON)

    return Draft(FormView(f"{epic.epic_id} {epic.title}", _epic_fields(shown)), save)


def _task_fields(values: Values) -> tuple[FieldView, ...]:
    return tuple(
        FieldView(
            each.name,
            each.label,
            values.get(each.name, ""),
            kind="text" if each.long else "choice" if each.choices else "line",
            hint=each.hint,
            choices=each.choices,
        )
        for each in task_form.FIELDS
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
