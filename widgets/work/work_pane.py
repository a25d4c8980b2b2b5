"""Chains & work: the current state of every chain, active task and session."""

from __future__ import annotations

from dataclasses import dataclass

from textual import events
from textual.binding import Binding
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.reactive import reactive

from widgets.text.cursor_list import CursorList, mark_row
from widgets.text.style_names import DIM, STRONG, line, tone
from widgets.views import WorkPaneView, WorkRowView
from widgets.work.chain_tree import chain_row, columns
from widgets.work.chain_tree_views import ChainRowView, ChainView
from widgets.work.task_card_views import TaskLineView
from widgets.work.task_cards import line_columns, task_line

_Row = ChainRowView | TaskLineView | WorkRowView

_EMPTY = "No chains or tasks yet. They appear here; ^t opens the board."
_TITLE_MOST = 36
_STATE_MOST = 22
_DETAIL_LEAST = 8
_INDENT = 2


class WorkPane(CursorList):
    """Draw a :class:`WorkPaneView`: the trees of chains, other active tasks, then other sessions.

    Tasks and sessions have a summary above them. Each row has a sign next to its colour. The followed
    row is marked ``▸``.
    """

    DEFAULT_CSS = "WorkPane { padding: 0 1; }"
    BINDINGS = [  # noqa: RUF012 -- Textual reads it as a class variable
        Binding("enter", "open", "attach", show=False),
        Binding("space", "peek", "peek", show=False),
    ]

    view: reactive[WorkPaneView] = reactive(WorkPaneView())

    @dataclass
    class RowOpened(Message):
        """The user opened a row: follow its session or show its task."""

        key: str

    @dataclass
    class RowPeeked(Message):
        """The user peeked at a row."""

        key: str

    @dataclass
    class RowMoved(Message):
        """The cursor is on another row."""

        key: str

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 -- Textual's name for it
        super().__init__(id=id)
        self._lines: list[_Row | str] = []
        self._places: list[int] = []
        self._shared = self._tasks = (0, 0, 0)
        self._titles = self._states = 0

    def show(self, view: WorkPaneView) -> None:
        """Draw ``view``; the cursor stays on the row with the same key."""
        self.view = view

    def on_mount(self) -> None:
        self.border_title = Content("Chains & work")

    @property
    def at_cursor(self) -> str:
        """The key of the row under the cursor; empty where there is none."""
        return self._key(self.cursor)

    def turn_to(self, key: str) -> bool:
        """Put the cursor on the row with a key; return False without one."""
        keys = [self._key(place) for place in range(len(self._places))]
        if key in keys:
            self.cursor = keys.index(key)
        return key in keys

    def _key(self, place: int) -> str:
        row = self._lines[self._places[place]] if place < len(self._places) else ""
        return row if isinstance(row, str) else row.key

    def watch_view(self, view: WorkPaneView) -> None:
        last_key = self.at_cursor
        self._lines = _laid_out(view)
        self._places = [at for at, row in enumerate(self._lines) if not isinstance(row, str)]
        self._shared, self._tasks = columns(view.chains), line_columns(view.tasks)
        self._titles = max((_cells(row) for row in view.rows), default=0)
        states = (line(row.state).cell_length for row in view.rows)
        self._states = min(_STATE_MOST, max(states, default=0))
        self.cursor = min(self.cursor, max(0, len(self._places) - 1))
        self.turn_to(last_key)
        self.virtual_size = Size(0, max(1, len(self._lines)))
        self.refresh()

    @property
    def count(self) -> int:
        return len(self._places)

    def top_of(self, place: int) -> int:
        # What stands above the first row comes into view with it.
        return self._places[place] if 0 < place < len(self._places) else 0

    def watch_cursor(self) -> None:
        self.post_message(self.RowMoved(self.at_cursor))
        super().watch_cursor()

    def action_open(self) -> None:
        """Ask to follow the row under the cursor."""
        if key := self.at_cursor:
            self.post_message(self.RowOpened(key))

    def action_peek(self) -> None:
        """Ask to peek at the row under the cursor."""
        if key := self.at_cursor:
            self.post_message(self.RowPeeked(key))

    def on_click(self, event: events.Click) -> None:
        """Open the row that was clicked."""
        at = event.y - self.gutter.top + self.scroll_offset.y
        if event.y >= self.gutter.top and at in self._places:  # not on the border
            self.cursor = self._places.index(at)
            self.action_open()

    def content_at(self, y: int, width: int) -> Content:
        if not self._lines:
            rows = line((_EMPTY, DIM)).wrap(max(1, width))
            return rows[y] if y < len(rows) else Content("")
        row = self._lines[y] if y < len(self._lines) else ""
        if isinstance(row, str):
            return line(row)
        if isinstance(row, WorkRowView):
            content = self._row(row, min(_TITLE_MOST, self._titles), width)
        elif isinstance(row, TaskLineView):
            key, phase, count = self._tasks
            content = task_line(row, width, key=key, phase=phase, count=count)
        else:
            content = chain_row(row, width, self._shared)
        if self.has_focus and self._places[self.cursor : self.cursor + 1] == [y]:
            content = mark_row(content, width)
        return content

    def _row(self, row: WorkRowView, title_cells: int, width: int) -> Content:
        states = self._states
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
        content = Content.assemble(mark, " ", title, "  ", state)
        return Content.assemble(content, "  ", line((row.detail, DIM))) if detailed else content


def _laid_out(view: WorkPaneView) -> list[_Row | str]:
    """Return the lines of the pane: rows, and text between them."""
    lines: list[_Row | str] = []
    for place, row in enumerate(view.chains):
        # A chain with an open tree has an empty line after it.
        if (
            place
            and isinstance(row, ChainView)
            and not isinstance(view.chains[place - 1], ChainView)
        ):
            lines.append("")
        lines.append(row)
    blocks: list[list[_Row | str]] = [lines] if lines else []
    if view.work or view.tasks:
        blocks.append([*([view.work] if view.work else []), *view.tasks])
    if view.summary or view.rows:
        head = [view.summary, ""] if view.summary else []
        blocks.append([*head, *view.rows])
    return [
        each for place, block in enumerate(blocks) for each in [*([""] if place else []), *block]
    ]


def _cells(row: WorkRowView) -> int:
    return row.depth * _INDENT + 2 + line(row.title).cell_length
