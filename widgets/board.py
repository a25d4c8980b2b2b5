"""Chains and work: what every task at work, session and chain does now."""

from __future__ import annotations

from dataclasses import dataclass

from textual import events
from textual.binding import Binding
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.visual import Visual

from widgets.card_views import TaskLineView
from widgets.cards import line_columns, task_line
from widgets.tone import CURSOR, DIM, STRONG, line, tone
from widgets.views import BoardView, WorkRowView

_TITLE_MOST = 36
_STATE_MOST = 22
_DETAIL_LEAST = 8
_INDENT = 2


class Board(ScrollView, can_focus=True):
    """Draw a :class:`BoardView`: the tasks at work, one line each, then the sessions.

    Both stand below a summary. Each row has a sign in its tone, so that no state is told by colour
    alone. The row that the person is attached to is marked ``▸``.
    """

    DEFAULT_CSS = """
    Board { height: 1fr; width: 1fr; padding: 0 1; overflow-x: hidden; text-wrap: nowrap; }
    """
    BINDINGS = [  # noqa: RUF012 -- Textual reads it as a class variable
        Binding("j,down", "move(1)", "next row", show=False),
        Binding("k,up", "move(-1)", "previous row", show=False),
        Binding("home,g", "edge(0)", "first row", show=False),
        Binding("end,G", "edge(-1)", "last row", show=False),
        Binding("enter", "open", "attach", show=False),
        Binding("space", "peek", "peek", show=False),
    ]

    view: reactive[BoardView] = reactive(BoardView())
    cursor: reactive[int] = reactive(0)

    @dataclass
    class RowOpened(Message):
        """The person wants to follow this row's session, or to see its task."""

        key: str

    @dataclass
    class RowPeeked(Message):
        """The person wants a glance at this row without leaving."""

        key: str

    @dataclass
    class RowMoved(Message):
        """The cursor stands on another row; keys mean something else."""

        key: str

    def show(self, view: BoardView) -> None:
        """Draw ``view``; the cursor stays on the row with the same key."""
        self.view = view

    def on_mount(self) -> None:
        self.border_title = Content("Chains & work")

    @property
    def at_cursor(self) -> str:
        """The key of the row under the cursor; empty where there is none."""
        keys = _keys(self.view)
        return keys[self.cursor] if self.cursor < len(keys) else ""

    def watch_view(self, old: BoardView, view: BoardView) -> None:
        before, keys = _keys(old), _keys(view)
        held = before[self.cursor] if self.cursor < len(before) else None
        self.cursor = keys.index(held) if held in keys else min(self.cursor, max(0, len(keys) - 1))
        self.virtual_size = Size(0, self._line_of(len(keys)) if keys else 1)
        self.refresh()

    @property
    def _head(self) -> int:
        """Lines before the first session."""
        return self._task_lines + (2 if self.view.summary else 0)

    @property
    def _task_lines(self) -> int:
        """Lines of the tasks: their summary, one for each, and an empty one."""
        view = self.view
        lines = (1 if view.work else 0) + len(view.tasks)
        return lines + 1 if lines else 0

    def _line_of(self, place: int) -> int:
        """The line on which the row at ``place`` is drawn."""
        tasks = len(self.view.tasks)
        if place < tasks:
            return place + (1 if self.view.work else 0)
        return self._head + place - tasks

    def _place_at(self, y: int) -> int | None:
        """The row on line ``y``, or None."""
        tasks, first = len(self.view.tasks), 1 if self.view.work else 0
        if first <= y < first + tasks:
            return y - first
        place = y - self._head
        return tasks + place if 0 <= place < len(self.view.rows) else None

    def watch_cursor(self) -> None:
        self.post_message(self.RowMoved(self.at_cursor))
        top, height = self._line_of(self.cursor), self.content_size.height
        if top < self.scroll_offset.y or self.cursor == 0:
            self.scroll_to(y=0 if self.cursor == 0 else top, animate=False)
        elif height and top >= self.scroll_offset.y + height:
            self.scroll_to(y=top - height + 1, animate=False)
        self.refresh()

    def action_move(self, step: int) -> None:
        """Move the cursor by ``step`` rows."""
        self.cursor = max(0, min(self.cursor + step, len(_keys(self.view)) - 1))

    def action_edge(self, place: int) -> None:
        """Move the cursor to the first (0) or last (-1) row."""
        self.cursor = 0 if place == 0 else max(0, len(_keys(self.view)) - 1)

    def action_open(self) -> None:
        """Ask to follow the row under the cursor."""
        if key := self.at_cursor:
            self.post_message(self.RowOpened(key))

    def action_peek(self) -> None:
        """Ask for a glance at the row under the cursor."""
        if key := self.at_cursor:
            self.post_message(self.RowPeeked(key))

    def on_click(self, event: events.Click) -> None:
        """Open the row that was clicked."""
        place = self._place_at(event.y - self.gutter.top + self.scroll_offset.y)
        if place is not None:
            self.cursor = place
            self.action_open()

    def render_line(self, y: int) -> Strip:
        width = self.content_size.width
        content = self._content(y + self.scroll_offset.y, width)
        if width < 1:
            return Strip.blank(0)
        content = content.truncate(width, ellipsis=True)
        return Visual.to_strips(self, content, width, 1, self.visual_style, pad=True)[0]

    def _content(self, y: int, width: int) -> Content:
        view = self.view
        if y == 0 and view.work:
            return line(view.work)
        if view.summary and y == self._task_lines:
            return line(view.summary)
        place = self._place_at(y)
        if place is None:
            empty = y == 0 and not (view.rows or view.tasks or view.work)
            words = "No other sessions. Waves, chains and tasks show here." if empty else ""
            return line((words, DIM))
        if place < len(view.tasks):
            content = self._work_line(view.tasks[place], width)
        else:
            titles = max(_cells(row) for row in view.rows)
            row = view.rows[place - len(view.tasks)]
            content = self._row(row, min(_TITLE_MOST, titles), width)
        if self.has_focus and place == self.cursor:
            content = content.pad_right(max(0, width - content.cell_length)).stylize(CURSOR)
        return content

    def _work_line(self, task: TaskLineView, width: int) -> Content:
        key, phase, count = line_columns(self.view.tasks)
        return task_line(task, width, key=key, phase=phase, count=count)

    def _row(self, row: WorkRowView, title_cells: int, width: int) -> Content:
        states = max(line(each.state).cell_length for each in self.view.rows)
        states = min(states, _STATE_MOST)
        detailed = width >= title_cells + states + _DETAIL_LEAST + 6
        if not detailed:
            title_cells = max(_DETAIL_LEAST, width - states - 4)
        mark = "▸" if row.current else " "
        title = line(
            " " * (row.depth * _INDENT),
            (row.sign or "·", tone(row.tone)),
            " ",
            (row.title, STRONG if row.current else ""),
        ).truncate(title_cells, ellipsis=True, pad=True)
        state = line((row.state, tone(row.tone) or DIM)).truncate(states, ellipsis=True, pad=True)
        drawn = Content.assemble(mark, " ", title, "  ", state)
        return Content.assemble(drawn, "  ", line((row.detail, DIM))) if detailed else drawn


def _cells(row: WorkRowView) -> int:
    return row.depth * _INDENT + 2 + line(row.title).cell_length


def _keys(view: BoardView) -> list[str]:
    return [task.key for task in view.tasks] + [row.key for row in view.rows]
