"""What going back to a wave will do, before it is done.

Specified in ``docs/reference/loop.md``, rewind.
"""

from __future__ import annotations

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.content import Content

from cockpit.app.dialogs.small_dialogs import Dialog
from cockpit.core.text import pluralize
from cockpit.loop.rewind.plan_rewind import RewindPlan
from widgets.text.detail import DetailRow, sentence
from widgets.text.detail_lines import DetailLines
from widgets.text.style_names import DIM, STRONG, WARN, line


class RewindView(Dialog[bool]):
    """The files that get their earlier content, and what stays; ``y`` answers with True."""

    BINDINGS = [  # noqa: RUF012 -- Textual's way
        Binding("y", "answer", "go back", show=False),
        Binding("j,down", "scroll_by(1)", "down", show=False),
        Binding("k,up", "scroll_by(-1)", "up", show=False),
    ]

    def __init__(self, plan: RewindPlan) -> None:
        super().__init__()
        self._plan = plan

    def compose(self) -> ComposeResult:
        with VerticalScroll(classes="box", id="rewind") as box:
            box.border_title = Content(f"Go back to wave {self._plan.wave}?")
            box.border_subtitle = Content("y go back · esc stay")
            yield DetailLines(describe_plan(self._plan))

    def action_answer(self) -> None:
        """Go back."""
        self.dismiss(True)

    def action_scroll_by(self, step: int) -> None:
        """Scroll by a line."""
        self.query_one("#rewind").scroll_relative(y=step, animate=False)


def describe_plan(plan: RewindPlan) -> list[DetailRow]:
    """Return the rows: what is written, what stays, and what is kept."""
    rows = []
    count = len(plan.files)
    what = (
        "No file changes." if not count else f"{pluralize(count, 'file')} get what they had then:"
    )
    rows.append(sentence((what.replace("1 file get what they", "1 file gets what it"), STRONG)))
    for each in plan.files:
        does = (
            "is removed: it did not exist" if each.content is None else "gets its earlier content"
        )
        rows.append(_entry(each.path, does))
    if plan.stays:
        rows += [sentence(), sentence(("This stays as it is:", WARN))]
        rows += [_entry(each) for each in plan.stays]
    kept = (
        "A new session continues after this wave. The present one stays in the list (F6); `u` on the new one"
        " there brings these files back as they are now."
    )
    rows += [sentence(), sentence((kept, DIM))]
    return rows


def _entry(text: str, does: str = "") -> DetailRow:
    return DetailRow(
        line(text, (f"  {does}" if does else "", DIM)), line(("  · ", DIM)), Content("    ")
    )
