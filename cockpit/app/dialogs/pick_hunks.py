"""Keep some hunks of a proposed change: each with its lines and a box to tick.

Specified in ``docs/reference/screen.md``, hunks.
"""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from cockpit.app.dialogs.small_dialogs import Dialog
from cockpit.core.text import pluralize
from cockpit.loop.decisions.keep_hunks import Hunk
from widgets.text.clean import clean
from widgets.text.style_names import BAD, CURSOR, DIM, GOOD, STRONG, block, line

_LINES_MOST = 200
_KEYS = "␣ keep or drop · ⏎ propose · esc back"


class PickHunks(Dialog[tuple[int, ...]]):
    """The answer is the places of the hunks that are kept, from 0. Nothing is decided here."""

    BINDINGS = [  # noqa: RUF012 -- Textual's way
        Binding("j,down", "move(1)", "next", show=False),
        Binding("k,up", "move(-1)", "previous", show=False),
        Binding("space,x", "keep_or_drop", "keep or drop", show=False),
        Binding("enter", "keep", "propose", show=False, priority=True),
    ]

    def __init__(self, title: str, hunks: Sequence[Hunk]) -> None:
        super().__init__()
        self._title = title
        self._hunks = tuple(hunks)
        self._rows = [Static(classes="hunk") for _ in hunks]
        self._box = VerticalScroll(*self._rows, id="hunks", classes="box")
        self.cursor = 0
        self.dropped: set[int] = set()

    def compose(self) -> ComposeResult:
        yield self._box

    def on_mount(self) -> None:
        self._box.border_title = Content(clean(self._title, newlines=False))
        self._draw()

    def action_move(self, step: int) -> None:
        """Go to another hunk."""
        self.cursor = max(0, min(self.cursor + step, len(self._hunks) - 1))
        self._draw()
        self._rows[self.cursor].scroll_visible(animate=False)

    def action_keep_or_drop(self) -> None:
        """Keep or drop the hunk under the cursor."""
        self.dropped ^= {self.cursor}
        self._draw()

    def action_keep(self) -> None:
        """Answer with what is kept."""
        self.dismiss(tuple(each for each in range(len(self._hunks)) if each not in self.dropped))

    def _draw(self) -> None:
        kept = len(self._hunks) - len(self.dropped)
        count = f"{kept} of {pluralize(len(self._hunks), 'hunk')} kept"
        self._box.border_subtitle = Content(f"{count} · {_KEYS}")
        for place, (row, hunk) in enumerate(zip(self._rows, self._hunks, strict=True)):
            is_kept = place not in self.dropped
            head = line(
                (f"[{'x' if is_kept else ' '}] line {hunk.first}", STRONG if is_kept else DIM)
            )
            if place == self.cursor:
                head = head.stylize(CURSOR)
            lines = [("-", each, BAD) for each in hunk.removed]
            lines += [("+", each, GOOD) for each in hunk.added]
            shown = [
                block(f"    {sign} {text}", style if is_kept else DIM)
                for sign, text, style in lines[:_LINES_MOST]
            ]
            if len(lines) > _LINES_MOST:
                shown.append(line((f"    {len(lines) - _LINES_MOST:,} more lines", DIM)))
            row.update(Content("\n").join([head, *shown]))
