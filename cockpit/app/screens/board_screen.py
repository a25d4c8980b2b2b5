"""The board: the whole backlog in columns, browsed and changed with the keyboard.

Specified in ``docs/reference/screen.md``.
"""

from __future__ import annotations

from collections.abc import Sequence

from cockpit.app.host import Host
from cockpit.app.screens.backlog_screen import BacklogScreen
from widgets.text.style_names import DIM, STRONG, WARN, Part
from widgets.views import KeyHintView
from widgets.work.kanban import Kanban


class BoardScreen(BacklogScreen):
    """The backlog as a board; its filter and cursor last as long as the program."""

    NAME = "Board"
    IS_BOARD = True

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._kanban = Kanban()
        self._filter = host.board_filter
        self._last_task = self._filter.task_id

    @property
    def body(self) -> Kanban:
        return self._kanban

    @property
    def task_id(self) -> str:
        card = self._kanban.at_cursor
        return card.key if card is not None else ""

    def filter_tasks(self, *, scope: str | None = None, text: str | None = None) -> None:
        """Show only the tasks of an epic or story, or those that contain ``text``; empty: all."""
        if scope is not None:
            self._filter.scope = scope
        if text is not None:
            self._filter.words = text
        self._apply_filter()

    def toggle_groups(self) -> None:
        """Group the tasks of a story together, or stop grouping."""
        self._filter.grouped = not self._filter.grouped
        self._apply_filter()

    def _apply_filter(self) -> None:
        self.redraw()
        self.paint()

    def redraw(self) -> None:
        first = not self._kanban.view.columns
        self._kanban.show(self._filter.kanban(self.work))
        if first:
            self._kanban.turn_to(self._last_task)

    def head(self) -> tuple[str, Sequence[Part]]:
        view = self._kanban.view
        parts: list[Part] = []
        if view.scope:
            parts += [("only ", DIM), (view.scope, WARN), "   "]
        if view.filter_text:
            parts += [("with ", DIM), (view.filter_text, WARN), "   "]
        empty = "No tasks yet. n creates one."
        parts.append((view.summary or empty, DIM if view.summary else STRONG))
        return self.NAME, parts

    def action_leave(self) -> None:
        """Clear the filter, else close the board."""
        if self._filter.words:
            self.filter_tasks(text="")
        elif self._filter.scope:
            self.filter_tasks(scope="")
        else:
            self.dismiss(None)

    def update_hints(self) -> None:
        super().update_hints()
        if self._filter.words or self._filter.scope:
            *hints, _ = self.bar.hints
            self.bar.show([*hints, KeyHintView("esc", "all tasks", press="escape")])

    def on_kanban_moved(self) -> None:
        """Update the footer: other actions are valid."""
        self._filter.task_id = self.task_id or self._filter.task_id
        self.update_hints()

    def on_kanban_opened(self, event: Kanban.Opened) -> None:
        """Show the task in full."""
        from cockpit.app.screens.task_screen import TaskScreen

        self.host.open_screen(TaskScreen(self.host, event.key))
