"""The work queue over the whole screen: which task is next, and why.

Specified in ``docs/reference/screen.md``.
"""

from __future__ import annotations

from collections.abc import Sequence

from cockpit.app import task_reader
from cockpit.app.host import Host
from cockpit.app.projection.kanban import summary
from cockpit.app.projection.task_detail import queued_view
from cockpit.app.screens.backlog_screen import BacklogScreen
from cockpit.core.errors import CockpitError
from widgets.text.tone import DIM, Part
from widgets.work.queue_list import QueueList


class QueueScreen(BacklogScreen):
    """Open tasks in the order in which workers claim them; live."""

    NAME = "Queue"

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._list = QueueList(empty="No open tasks. n creates one.")
        self._reading = False

    @property
    def body(self) -> QueueList:
        return self._list

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
                rows = await task_reader.read_queue(self.host.engine.store)
                tasks = self.work.tasks
                self._list.show([queued_view(row, tasks.get(row.task_id)) for row in rows])
        except CockpitError as error:
            self.host.show_error(str(error))
        finally:
            self._reading = False
        self.paint()

    def on_queue_list_moved(self) -> None:
        """Update the footer: other actions are valid."""
        self.update_hints()

    def on_queue_list_opened(self, event: QueueList.Opened) -> None:
        """Show the task in full."""
        from cockpit.app.screens.task_screen import TaskScreen

        self.host.open_screen(TaskScreen(self.host, event.key))
