"""The board: the whole backlog in columns, moved through and changed from the keyboard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cockpit.app.screens.backlog_screen import WorkScreen
from widgets.text.tone import DIM, STRONG, WARN, Part
from widgets.views import KeyHintView
from widgets.work.kanban import Kanban

if TYPE_CHECKING:
    from cockpit.app.screens.cockpit_screen import CockpitScreen


class BoardScreen(WorkScreen):
    """The backlog as a board; the filter and the cursor stay while the program runs."""

    NAME = "Board"
    BOARD = True

    def __init__(self, main: CockpitScreen) -> None:
        super().__init__(main)
        self._kanban = Kanban()
        self.looking = main.acts.looking
        self._held = self.looking.task_id

    @property
    def body(self) -> Kanban:
        return self._kanban

    @property
    def task_id(self) -> str:
        card = self._kanban.at_cursor
        return card.key if card is not None else ""

    def look_at(self, *, scope: str | None = None, words: str | None = None) -> None:
        """Show only the tasks of an epic or story, or those with certain words; empty: all."""
        if scope is not None:
            self.looking.scope = scope
        if words is not None:
            self.looking.words = words
        self._again()

    def group(self) -> None:
        """Put the tasks of a story together, or not any more."""
        self.looking.grouped = not self.looking.grouped
        self._again()

    def _again(self) -> None:
        self.redraw()
        self.paint()

    def redraw(self) -> None:
        first = not self._kanban.view.columns
        self._kanban.show(self.looking.kanban(self.work))
        if first:
            self._kanban.turn_to(self._held)

    def head(self) -> tuple[str, Sequence[Part]]:
        view = self._kanban.view
        parts: list[Part] = []
        if view.scope:
            parts += [("only ", DIM), (view.scope, WARN), "   "]
        if view.words:
            parts += [("with ", DIM), (view.words, WARN), "   "]
        parts.append(
            (view.summary or "no tasks yet: n writes one", DIM if view.summary else STRONG)
        )
        return self.NAME, parts

    def action_leave(self) -> None:
        """Out of the filter, else back."""
        if self.looking.words:
            self.look_at(words="")
        elif self.looking.scope:
            self.look_at(scope="")
        else:
            self.dismiss(None)

    def words(self) -> None:
        super().words()
        if self.looking.words or self.looking.scope:
            *hints, _ = self.bar.hints
            self.bar.show([*hints, KeyHintView("esc", "all tasks")])

    def on_kanban_moved(self) -> None:
        """Other keys are valid."""
        self.looking.task_id = self.task_id or self.looking.task_id
        self.words()

    def on_kanban_opened(self, event: Kanban.Opened) -> None:
        """See the task in full."""
        self.main.acts.open(event.key)
