"""The work queue over the whole screen: which task is next, and why.

Specified in ``docs/reference/screen.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.binding import Binding
from textual.containers import Container

from cockpit.app import task_reader
from cockpit.app.host import Host
from cockpit.app.projection.kanban import summary
from cockpit.app.projection.task_detail import queued_detail, queued_view
from cockpit.app.screens.backlog_screen import BacklogScreen
from cockpit.core.errors import CockpitError
from widgets.text.detail import Detail
from widgets.text.style_names import DIM, Part
from widgets.work.two_line_list import TwoLineList

if TYPE_CHECKING:
    from cockpit.app.actions.action import Action
    from cockpit.store.backlog.work_queue import Queued

_WIDE = 110
"""Columns from which the reasons are drawn next to the list."""


class QueueScreen(BacklogScreen):
    """Open tasks in the order in which workers claim them; live."""

    NAME = "Queue"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (_WIDE, "-wide")]  # noqa: RUF012 -- Textual's way
    DEFAULT_CSS = """
    QueueScreen #queue-body { height: 1fr; layout: vertical; }
    QueueScreen #queue-detail { height: 1fr; width: 1fr; padding: 0 1; border-top: solid $rule; }
    QueueScreen.-wide #queue-body { layout: horizontal; }
    QueueScreen.-wide #queue-detail { height: 1fr; border-top: none; border-left: solid $rule; }
    QueueScreen #queue-body TwoLineList { height: auto; min-height: 4; max-height: 50vh; width: 1fr; }
    QueueScreen.-wide #queue-body TwoLineList { height: 1fr; max-height: 100vh; width: 3fr; }
    QueueScreen.-wide #queue-detail { width: 2fr; }
    """
    BINDINGS = [  # noqa: RUF012 -- Textual's way
        Binding("ctrl+down,J", "scroll_reasons(1)", "reasons down", show=False),
        Binding("ctrl+up,K", "scroll_reasons(-1)", "reasons up", show=False),
    ]

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._list = TwoLineList(empty="No open tasks. n creates one.")
        self._detail = Detail(id="queue-detail")
        self._rows: Sequence[Queued] = ()
        self._reading = False
        self._body = Container(self._list, self._detail, id="queue-body")

    @property
    def body(self) -> Container:
        return self._body

    @property
    def first_focus(self) -> TwoLineList:
        return self._list

    def footer_actions(self) -> Sequence[Action[Host]]:
        """Return the actions that the footer may show: not the one that leads here."""
        return [action for action in super().footer_actions() if action.id != "queue"]

    def action_scroll_reasons(self, lines: int) -> None:
        """Scroll the reasons of the task under the cursor."""
        self._detail.scroll_relative(y=lines * 3, animate=False)

    def _draw_reasons(self) -> None:
        """Show in full why the task under the cursor has its place."""
        place = self._list.cursor
        row = self._rows[place] if place < len(self._rows) else None
        rows = queued_detail(row, place + 1, self.work.tasks) if row is not None else []
        self._detail.display = bool(rows)
        self._detail.show(rows)

    @property
    def task_id(self) -> str:
        row = self._list.at_cursor
        return row.key if row is not None else ""

    def head(self) -> tuple[str, Sequence[Part]]:
        shown = len(self._list.rows)
        parts: list[Part] = []
        if shown == task_reader.QUEUE_MOST:
            parts.append((f"the first {shown:,}   ", DIM))
        parts.append((summary(self.work), DIM))
        return self.NAME, parts

    def redraw(self) -> None:
        if not self._reading:
            self._reading = True
            self.host.run_in_background(self._read_and_draw())

    async def _read_and_draw(self) -> None:
        revision_read = -1
        try:
            while self.is_attached and revision_read != self._revision:
                revision_read = self._revision
                rows = self._rows = await task_reader.read_queue(self.host.engine.store)
                tasks = self.work.tasks
                self._list.show([queued_view(row, tasks.get(row.task_id)) for row in rows])
        except CockpitError as error:
            self.host.show_error(str(error))
        finally:
            self._reading = False
        if self.is_attached:
            self._draw_reasons()
        self.paint()

    def on_two_line_list_moved(self) -> None:
        """Show the reasons of another task; other actions are valid."""
        self._draw_reasons()
        self.update_hints()

    def on_two_line_list_opened(self, event: TwoLineList.Opened) -> None:
        """Show the task in full."""
        from cockpit.app.screens.task_screen import TaskScreen

        self.host.open_screen(TaskScreen(self.host, event.key))
