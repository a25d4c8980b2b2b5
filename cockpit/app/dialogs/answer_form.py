"""The form with which the user answers what an external agent asks.

Specified in ``docs/reference/screen.md``.
"""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input, Static

from cockpit.app.dialogs.small_dialogs import Dialog, without_blinking
from cockpit.app.host import Host
from cockpit.core.errors import CockpitError
from cockpit.loop.permissions.question_form import Answer
from widgets.forms.option_group import OptionGroup
from widgets.text.clean import clean
from widgets.text.style_names import BAD, DIM, STRONG, line
from widgets.views import ProposalView, QuestionView

_KEYS = "^s send · ⇥ next · space choose · esc back"
_HINTS = {"number": "a number", "integer": "a whole number", "yes_no": "yes or no"}


class AnswerForm(Dialog[bool]):
    """The questions of one proposal, each with its options or a line; Ctrl+S sends all answers.

    Its answer is True once the agent has them.
    """

    BINDINGS = [  # noqa: RUF012 -- Textual's way
        Binding("ctrl+s", "send", "send", show=False, priority=True),
    ]

    def __init__(self, host: Host, front: ProposalView) -> None:
        super().__init__()
        self._host, self._front = host, front
        self._fields = [_Fields(question) for question in front.questions]
        self._note = Static(id="form-note")
        self._is_sending = False

    def compose(self) -> ComposeResult:
        with Vertical(classes="box", id="answers") as box:
            box.border_title = Content(f"{clean(self._front.agent, newlines=False)} asks you")
            box.border_subtitle = Content(_KEYS)
            with VerticalScroll(can_focus=False):
                for number, fields in enumerate(self._fields, 1):
                    yield Static(fields.heading(number, len(self._fields)), classes="question")
                    yield from fields.widgets
            yield self._note

    def on_mount(self) -> None:
        self._note.display = False
        for widget in self._fields[0].widgets:
            widget.focus()
            break

    def on_option_group_entered(self, event: OptionGroup.Entered) -> None:
        """Go to the next question, and after the last one send."""
        event.stop()
        self._go_on()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Go to the next question, and after the last one send."""
        event.stop()
        self._go_on()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Remove text that would act on the terminal; a text of one's own takes the place of an option."""
        event.stop()
        self._note.display = False
        if (cleaned := clean(event.value, newlines=False)) != event.value:
            event.input.value = cleaned
        for fields in self._fields:
            fields.note_text(event.input)

    def _go_on(self) -> None:
        focused = self.screen.focused
        place = next(
            (n for n, fields in enumerate(self._fields) if focused in fields.widgets),
            len(self._fields) - 1,
        )
        if place + 1 < len(self._fields):
            self._fields[place + 1].widgets[0].focus()
        else:
            self.action_send()

    def action_send(self) -> None:
        """Send the answers; what they lack is said below them."""
        if not self._is_sending:
            self._is_sending = True
            self._host.run_in_background(self._send([each.answer for each in self._fields]))

    async def _send(self, answers: Sequence[Answer]) -> None:
        front = self._front
        try:
            await self._host.engine.answer(
                front.proposal_id, shown_digest=front.digest, answers=answers
            )
        except CockpitError as error:
            self._note.update(line((str(error), BAD)))
            self._note.display = True
            return
        finally:
            self._is_sending = False
        if self.is_attached:
            self.dismiss(True)


class _Fields:
    """The widgets of one question."""

    def __init__(self, question: QuestionView) -> None:
        self._question = question
        self._group: OptionGroup | None = None
        self._line: Input | None = None
        self.widgets: list[Widget] = []
        if question.options:
            self._group = OptionGroup(question.options, several=question.several)
            self.widgets.append(self._group)
        if question.other or not question.options:
            hint = "or a text of your own" if question.options else _HINTS.get(question.kind, "")
            value = "" if question.options else clean(question.default, newlines=False)
            field = Input(value, placeholder=hint, select_on_focus=False)
            self._line = without_blinking(field)
            self.widgets.append(self._line)

    def heading(self, number: int, count: int) -> Content:
        """Return what stands above the widgets."""
        question = self._question
        counted = f"{number} of {count}  " if count > 1 else ""
        more = ["choose any"] if question.several else []
        more += [] if question.required else ["may be left empty"]
        return line(
            (counted, DIM),
            (f"{question.header}  " if question.header and question.text else "", DIM),
            (question.text or question.header, STRONG),
            (f"  ({', '.join(more)})" if more else "", DIM),
        )

    @property
    def answer(self) -> Answer:
        """What the user chose and wrote."""
        text = self._line.value if self._line is not None else ""
        picked = self._group.picked if self._group is not None else ()
        if text.strip() and not self._question.several:
            picked = ()
        return Answer(picked, text if text.strip() else "")

    def note_text(self, field: Input) -> None:
        """Take the option back that a text of one's own takes the place of."""
        group = self._group
        is_own = field is self._line and bool(field.value.strip())
        if is_own and group is not None and not self._question.several:
            group.clear()
