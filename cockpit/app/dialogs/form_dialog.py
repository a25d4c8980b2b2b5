"""A form over the screen: kept with one key, written in the person's editor with another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from cockpit.app.dialogs.question import Dialog
from cockpit.app.dialogs.task_form import Draft
from cockpit.backlog import form_text
from cockpit.core.errors import CockpitError
from widgets.forms.form import Form
from widgets.text.clean import clean
from widgets.text.tone import BAD, WARN, line

if TYPE_CHECKING:
    from cockpit.app.screens.cockpit_screen import CockpitScreen

_KEYS = "^s keep · ⇥ next field · ^g editor · esc back"


class FormDialog(Dialog[bool]):
    """Fill in a form. What cannot be kept is told in the form, and nothing that was typed is lost."""

    BINDINGS = [  # noqa: RUF012 -- Textual's way
        Binding("ctrl+s", "save", "keep", show=False, priority=True),
        Binding("ctrl+g", "editor", "editor", show=False, priority=True),
    ]

    def __init__(self, main: CockpitScreen, draft: Draft) -> None:
        super().__init__()
        self.main, self.draft = main, draft
        self.form = Form(draft.view)
        self._note = Static(id="form-note")
        self._box = Vertical(self.form, self._note, id="form", classes="box")
        self._leaving = False
        self._saving = False

    def compose(self) -> ComposeResult:
        yield self._box

    def on_mount(self) -> None:
        self._box.border_title = Content(clean(self.draft.view.title, newlines=False))
        self._box.border_subtitle = Content(_KEYS)
        self._note.display = False

    def action_save(self) -> None:
        """Keep what was changed; without a change there is nothing to keep."""
        changed = dict(self.form.changed)
        if not changed:
            self.dismiss(False)
        elif not self._saving:
            self._saving = True
            self.main.cockpit.do(self._save(changed))

    async def _save(self, changed: dict[str, str]) -> None:
        cockpit = self.main.cockpit
        try:
            await cockpit.engine.store.write(lambda tx: self.draft.save(tx, changed))
        except CockpitError as error:
            self._tell(str(error), BAD)
            return
        finally:
            self._saving = False
        self.dismiss(True)

    def action_editor(self) -> None:
        """Write the form in the person's editor."""
        self.main.cockpit.do(self._edit())

    async def _edit(self) -> None:
        shown, values = self.draft.view.fields, self.form.values
        fields = [
            form_text.FormField(
                each.name, each.label, each.hint, each.choices, long=each.kind == "text"
            )
            for each in shown
        ]
        try:
            before = form_text.write_form(
                fields,
                {each.name: clean(values[each.name], newlines=each.long) for each in fields},
            )
            after = await self.main.acts.in_editor(before, ".md")
            if after is not None and after != before:
                self.form.fill(form_text.read_form(fields, after))
        except CockpitError as error:
            self._tell(str(error), BAD)

    def action_leave(self) -> None:
        """Leave; with changes only when asked twice."""
        if self.form.changed and not self._leaving:
            self._leaving = True
            self._tell("Not kept yet: esc again leaves it, ^s keeps it.", WARN)
        else:
            self.dismiss(False)

    def on_form_changed(self) -> None:
        """Something was typed: what was told holds no more."""
        self._leaving = False
        self._note.display = False

    def _tell(self, words: str, style: str) -> None:
        self._note.update(line((words, style)))
        self._note.display = True
