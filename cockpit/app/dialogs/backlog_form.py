"""Forms for tasks, stories and epics: their fields, the dialog around them, and saving.

Specified in ``docs/reference/backlog.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from cockpit.app.actions.task_actions import USER
from cockpit.app.dialogs.small_dialogs import Dialog
from cockpit.app.host import Host
from cockpit.app.projection.work import SETTLED, Work
from cockpit.backlog import form_text, service, task_form
from cockpit.core.errors import CockpitError
from cockpit.store.backlog.epics_and_stories import PRIORITIES, Epic, Story
from cockpit.store.backlog.tasks import Task
from cockpit.store.db.transaction import Tx
from widgets.forms.form import FieldView, Form, FormView
from widgets.text.clean import clean
from widgets.text.style_names import BAD, WARN, line
from widgets.views import CompletionView

Values = Mapping[str, str]
"""Text by the name of its field."""

_KEYS = "^s save · ⇥ next field · ^g editor · esc back"


class Draft(Struct, frozen=True):
    """A form and its way into the backlog."""

    view: FormView
    save: Callable[[Tx, Values], object]
    """Write the fields that the user changed."""


def new_task(task_types: Sequence[str], story_id: str = "", *, work: Work | None = None) -> Draft:
    """Return the form of a new task of one of these types, of a story if one is given.

    ``work`` is the backlog, whose stories and tasks are offered.
    """
    fields = _task_fields({"type": "feature", "story": story_id}, task_types, work)

    def save(tx: Tx, values: Values) -> object:
        return task_form.create_task_from_form(tx, values, story_id=story_id, by=USER)

    return Draft(FormView("New task", fields), save)


def edit_task(
    task: Task, needs: tuple[str, ...], task_types: Sequence[str], *, work: Work | None = None
) -> Draft:
    """Return the form of a task that depends on the tasks ``needs`` and can have these types."""

    def save(tx: Tx, values: Values) -> object:
        return task_form.update_task_from_form(tx, task.task_id, values, by=USER)

    fields = _task_fields(task_form.form_texts(task, needs), task_types, work, task.task_id)
    return Draft(FormView(f"{task.task_id} {task.title}", fields), save)


def new_story(epic_id: str = "", *, work: Work | None = None) -> Draft:
    """Return the form of a new story, of an epic if one is given."""

    def save(tx: Tx, values: Values) -> object:
        return service.create_story(
            tx,
            values.get("title", ""),
            epic_id=values.get("epic", epic_id).strip() or None,
            description=values.get("description", ""),
            by=USER,
        )

    return Draft(FormView("New story", _story_fields({"epic": epic_id}, work)), save)


def edit_story(story: Story, *, work: Work | None = None) -> Draft:
    """Return the form of a story."""
    values = {"title": story.title, "epic": story.epic_id or "", "description": story.description}

    def save(tx: Tx, changed: Values) -> object:
        changes = {("epic_id" if name == "epic" else name): text for name, text in changed.items()}
        return service.update_story(tx, story.story_id, changes, by=USER)

    return Draft(FormView(f"{story.story_id} {story.title}", _story_fields(values, work)), save)


def new_epic() -> Draft:
    """Return the form of a new epic."""

    def save(tx: Tx, values: Values) -> object:
        return service.create_epic(
            tx,
            values.get("title", ""),
            priority=values.get("priority", "P2"),
            description=values.get("description", ""),
            by=USER,
        )

    return Draft(FormView("New epic", _epic_fields({"priority": "P2"})), save)


def edit_epic(epic: Epic) -> Draft:
    """Return the form of an epic; a new priority reorders the queue."""
    values = {"title": epic.title, "priority": epic.priority, "description": epic.description}

    def save(tx: Tx, changed: Values) -> object:
        return service.update_epic(tx, epic.epic_id, dict(changed), by=USER)

    return Draft(FormView(f"{epic.epic_id} {epic.title}", _epic_fields(values)), save)


def _task_fields(
    values: Values, task_types: Sequence[str], work: Work | None, task_id: str = ""
) -> tuple[FieldView, ...]:
    options = {"story": _stories(work), "waits_for": _tasks(work, task_id)}
    return tuple(
        FieldView(
            field.name,
            field.label,
            values.get(field.name, ""),
            kind="text" if field.long else "choice" if field.choices else "line",
            hint=field.hint,
            choices=field.choices,
            options=options.get(field.name, ()),
            several=field.name == "waits_for",
        )
        for field in task_form.task_fields(task_types, values["type"])
    )


def _stories(work: Work | None) -> tuple[CompletionView, ...]:
    stories = work.stories.values() if work is not None else ()
    return tuple(CompletionView(each.story_id, each.title) for each in stories)


def _epics(work: Work | None) -> tuple[CompletionView, ...]:
    epics = work.epics.values() if work is not None else ()
    return tuple(CompletionView(each.epic_id, each.title) for each in epics)


def _tasks(work: Work | None, but: str) -> tuple[CompletionView, ...]:
    """Return the tasks that one can wait for: open ones, without itself."""
    tasks = work.tasks.values() if work is not None else ()
    return tuple(
        CompletionView(each.task_id, each.title)
        for each in tasks
        if each.status not in SETTLED and each.task_id != but
    )


def _story_fields(values: Values, work: Work | None) -> tuple[FieldView, ...]:
    return (
        FieldView("title", "Title", values.get("title", ""), hint="who gets which benefit"),
        FieldView(
            "epic", "Epic", values.get("epic", ""), hint="an epic, or nothing", options=_epics(work)
        ),
        FieldView("description", "Description", values.get("description", ""), kind="text"),
    )


def _epic_fields(values: Values) -> tuple[FieldView, ...]:
    return (
        FieldView("title", "Title", values.get("title", ""), hint="the goal of its stories"),
        FieldView(
            "priority", "Priority", values.get("priority", ""), kind="choice", choices=PRIORITIES
        ),
        FieldView("description", "Description", values.get("description", ""), kind="text"),
    )


class FormDialog(Dialog[bool]):
    """Fill in a form. Errors appear in the form, and the typed text is never lost."""

    BINDINGS = [  # noqa: RUF012 -- Textual's way
        Binding("ctrl+s", "save", "save", show=False, priority=True),
        Binding("ctrl+g", "editor", "editor", show=False, priority=True),
    ]

    def __init__(self, host: Host, draft: Draft) -> None:
        super().__init__()
        self._host, self._draft = host, draft
        self.form = Form(draft.view)
        self._note = Static(id="form-note")
        self._box = Vertical(self.form, self._note, id="form", classes="box")
        self._leaving = False
        self._saving = False

    def compose(self) -> ComposeResult:
        yield self._box

    def on_mount(self) -> None:
        self._box.border_title = Content(clean(self._draft.view.title, newlines=False))
        self._box.border_subtitle = Content(_KEYS)
        self._note.display = False

    def action_save(self) -> None:
        """Save the changed fields; without a change, close."""
        changed = dict(self.form.changed)
        if not changed:
            self.dismiss(False)
        elif not self._saving:
            self._saving = True
            self._host.run_in_background(self._save(changed))

    async def _save(self, changed: dict[str, str]) -> None:
        try:
            await self._host.engine.store.write(lambda tx: self._draft.save(tx, changed))
        except CockpitError as error:
            self._show_note(str(error), BAD)
            return
        finally:
            self._saving = False
        self.dismiss(True)

    def action_editor(self) -> None:
        """Write the form in the user's editor."""
        self._host.run_in_background(self._edit())

    async def _edit(self) -> None:
        values = self.form.values
        fields = [
            form_text.FormField(
                field.name, field.label, field.hint, field.choices, long=field.kind == "text"
            )
            for field in self._draft.view.fields
        ]
        try:
            before = form_text.write_form(
                fields,
                {field.name: clean(values[field.name], newlines=field.long) for field in fields},
            )
            after = await self._host.edit_in_editor(before, ".md")
            if after is not None and after != before:
                self.form.fill(form_text.read_form(fields, after))
        except CockpitError as error:
            self._show_note(str(error), BAD)

    def action_leave(self) -> None:
        """Close; with unsaved changes, only on the second press."""
        if self.form.changed and not self._leaving:
            self._leaving = True
            self._show_note("Unsaved changes: ^s saves them, esc again discards them.", WARN)
        else:
            self.dismiss(False)

    def on_form_changed(self) -> None:
        """Hide the note: the user typed since."""
        self._leaving = False
        self._note.display = False

    def _show_note(self, text: str, style: str) -> None:
        self._note.update(line((text, style)))
        self._note.display = True
