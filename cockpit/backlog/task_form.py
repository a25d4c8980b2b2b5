"""A task as a form: its fields as text, and the task created or updated from them."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from cockpit.backlog import service
from cockpit.backlog.form_text import FormField
from cockpit.backlog.validation import BacklogInvalid
from cockpit.store.backlog import dependencies
from cockpit.store.backlog.backlog_ids import TASK, read_id
from cockpit.store.backlog.tasks import Task
from cockpit.store.db.transaction import Tx

_FIELDS = (
    FormField("title", "Title", "what is to be done, in a line"),
    FormField("type", "Type"),
    FormField("story", "Story", "a story, or nothing"),
    FormField("estimate_hours", "Estimate", "in hours"),
    FormField("waits_for", "Waits for", "tasks, with commas between"),
    FormField("packages", "Packages", "what it will touch, with commas between"),
    FormField("files", "Files", "paths that it will touch, with commas between"),
    FormField("description", "Description", long=True),
    FormField("acceptance_criteria", "Done when", long=True),
)
"""The fields of a task, in the order of the form; the choices of its type depend on the project."""

FormTexts = Mapping[str, str]
"""Text by field name."""

_NAMES = {"type": "task_type", "story": "story_id"}
_BETWEEN = re.compile(r"[\s,]+")


def task_fields(task_types: Sequence[str], current: str = "") -> tuple[FormField, ...]:
    """Return the fields for a task that has one of ``task_types``, or the type that it has now."""
    choices = tuple(dict.fromkeys((*task_types, *([current] if current else []))))
    return tuple(
        replace(each, choices=choices) if each.name == "type" else each for each in _FIELDS
    )


def waits_for(connection: sqlite3.Connection, task_id: str) -> tuple[str, ...]:
    """The ids of what a task waits for, done or not; what it only relates to is not among them."""
    rows = dependencies.select_prerequisites(connection, task_id)
    return tuple(each.depends_on_task_id for each in rows if each.dependency_type != "relates_to")


def form_texts(task: Task, needs: tuple[str, ...]) -> dict[str, str]:
    """Return the form's texts of a task that depends on the tasks in ``needs``."""
    return {
        "title": task.title,
        "type": task.task_type,
        "story": task.story_id or "",
        "estimate_hours": f"{task.estimate_hours:g}" if task.estimate_hours else "",
        "waits_for": ", ".join(needs),
        "packages": ", ".join(task.packages),
        "files": ", ".join(task.files),
        "description": task.description,
        "acceptance_criteria": task.acceptance_criteria,
    }


def create_task_from_form(tx: Tx, words: FormTexts, *, story_id: str = "", by: str) -> Task:
    """Write a task; of ``story_id`` where the words name no story.

    Raises :class:`BacklogInvalid`, :class:`cockpit.core.errors.NotFound` for a story or a task
    that is none, :class:`cockpit.store.backlog.dependencies.DependencyCycle`.
    """
    fields = _fields_from(words)
    title = fields.pop("title", "")
    story = fields.pop("story_id", story_id) or None
    task = service.create_task(tx, title, story_id=story, by=by, **fields)
    _set_dependencies(tx, task.task_id, words.get("waits_for", ""), by)
    return task


def update_task_from_form(tx: Tx, task_id: str, words: FormTexts, *, by: str) -> Task:
    """Change of a task what ``words`` hold, and nothing else. Raises as :func:`create_task_from_form`."""
    changed = service.update_task(tx, task_id, _fields_from(words), by=by)
    if "waits_for" in words:
        _set_dependencies(tx, changed.task_id, words["waits_for"], by)
    return changed


def _fields_from(words: FormTexts) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, text in words.items():
        if name in ("packages", "files"):
            fields[name] = tuple(part.strip() for part in text.split(",") if part.strip())
        elif name == "estimate_hours":
            fields[name] = _hours(text)
        elif name != "waits_for":
            fields[_NAMES.get(name, name)] = text.strip() if name == "story" else text
    return fields


def _hours(text: str) -> float:
    """Hours; none at all where the estimate was taken out."""
    try:
        return float(text.replace(",", ".") if text.strip() else 0)
    except ValueError:
        raise BacklogInvalid(f"The estimate is {text[:40]!r}; write a number of hours.") from None


def _set_dependencies(tx: Tx, task_id: str, written: str, by: str) -> None:
    """Let the task wait for exactly the tasks that are written; people write ids in many ways."""
    task_ids = [read_id(TASK, each) for each in _BETWEEN.split(written) if each]
    before = waits_for(tx.connection, task_id)
    for other in task_ids:
        if other not in before:
            service.add_dependency(tx, task_id, other, by=by)
    for other in before:
        if other not in task_ids:
            service.remove_dependency(tx, task_id, other, by=by)
