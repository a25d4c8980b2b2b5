"""The work queue over the whole screen: what comes next, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cockpit.app import task_reader
from cockpit.app.projection.kanban import summary
from cockpit.app.projection.task_detail import queued_view
from cockpit.app.screens.backlog_screen import WorkScreen
from cockpit.core.errors import CockpitError
from widgets.text.tone import DIM, Part
from widgets.work.queue import QueueList

if TYPE_CHECKING:
    from cockpit.app.screens.cockpit_screen import CockpitScreen


class QueueScreen(WorkScreen):
    """Open tasks in the order in which they would be begun; live."""

    NAME = "Queue"

    def __init__(self, main: CockpitScreen) -> None:
        super().__init__(main)
        self._list = QueueList(empty="Nothing is to be done: n writes a task.")
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
            self.main.cockpit.do(self._read())

    async def _read(self) -> None:
        cockpit, read_at = self.main.cockpit, -1
        try:
            while self.is_attached and read_at != self._revision:
                read_at = self._revision
                rows = await task_reader.queue(cockpit.engine.store)
                tasks = self.work.tasks
                self._list.show([queued_view(row, tasks.get(row.task_id)) for row in rows])
        except CockpitError as error:
            cockpit.tell(str(error))
        finally:
            self._reading = False
        self.paint()

    def on_queue_list_moved(self) -> None:
        """Other keys are valid."""
        self.words()

    def on_queue_list_opened(self, event: QueueList.Opened) -> None:
        """See the task in full."""
        self.main.acts.open(event.key)
