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
from cockpit.app.state.work import SETTLED, Work
from cockpit.backlog import form_text, service, task_form
from cockpit.core.errors import CockpitError
from cockpit.store.backlog.epics_and_stories import DEFAULT_PRIORITY, PRIORITIES, Epic, Story
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


def task_draft(
    work: Work,
    task_types: Sequence[str],
    task: Task | None = None,
    needs: tuple[str, ...] = (),
    *,
    story_id: str = "",
) -> Draft:
    """Return the form of a task, which depends on the tasks ``needs``, or of a new one of a story.

    It can have one of ``task_types``; the stories and tasks of ``work`` are offered.
    """

    def save(tx: Tx, changed: Values) -> object:
        if task is None:
            return task_form.create_task_from_form(tx, changed, story_id=story_id, by=USER)
        return task_form.update_task_from_form(tx, task.task_id, changed, by=USER)

    values: Values = {"type": "feature", "story": story_id}
    title, own_id = "New task", ""
    if task is not None:
        values, own_id = task_form.form_texts(task, needs), task.task_id
        title = f"{own_id} {task.title}"
    options = {
        "story": _options(work.stories),
        "waits_for": tuple(
            CompletionView(each.task_id, each.title)
            for each in work.tasks.values()
            if each.status not in SETTLED and each.task_id != own_id
        ),
    }
    fields = tuple(
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
    return Draft(FormView(title, fields), save)


def story_draft(work: Work, story: Story | None = None, *, epic_id: str = "") -> Draft:
    """Return the form of a story, or of a new one of an epic."""

    def save(tx: Tx, changed: Values) -> object:
        if story is None:
            return service.create_story(
                tx,
                changed.get("title", ""),
                epic_id=changed.get("epic", epic_id).strip() or None,
                description=changed.get("description", ""),
                by=USER,
            )
        changes = {("epic_id" if name == "epic" else name): text for name, text in changed.items()}
        return service.update_story(tx, story.story_id, changes, by=USER)

    name, home, text = "", epic_id, ""
    if story is not None:
        name, home, text = story.title, story.epic_id or "", story.description
    fields = (
        FieldView("title", "Title", name, hint="who gets which benefit"),
        FieldView("epic", "Epic", home, hint="an epic, or nothing", options=_options(work.epics)),
        FieldView("description", "Description", text, kind="text"),
    )
    return Draft(FormView(f"{story.story_id} {name}" if story else "New story", fields), save)


def epic_draft(epic: Epic | None = None) -> Draft:
    """Return the form of an epic, whose new priority reorders the queue, or of a new one."""

    def save(tx: Tx, changed: Values) -> object:
        if epic is not None:
            return service.update_epic(tx, epic.epic_id, dict(changed), by=USER)
        return service.create_epic(
            tx,
            changed.get("title", ""),
            priority=changed.get("priority", DEFAULT_PRIORITY),
            description=changed.get("description", ""),
            by=USER,
        )

    name, priority, text = "", DEFAULT_PRIORITY, ""
    if epic is not None:
        name, priority, text = epic.title, epic.priority, epic.description
    fields = (
        FieldView("title", "Title", name, hint="the goal of its stories"),
        FieldView("priority", "Priority", priority, kind="choice", choices=PRIORITIES),
        FieldView("description", "Description", text, kind="text"),
    )
    return Draft(FormView(f"{epic.epic_id} {name}" if epic else "New epic", fields), save)


def _options(parents: Mapping[str, Epic] | Mapping[str, Story]) -> tuple[CompletionView, ...]:
    return tuple(CompletionView(key, each.title) for key, each in parents.items())


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
