"""The work queue over the whole screen: which task is next, and why.

Specified in ``docs/reference/screen.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cockpit.app import task_reader
from cockpit.app.actions.action import Action
from cockpit.app.actions.context import ActionContext
from cockpit.app.host import Host
from cockpit.app.screens.backlog_screen import BacklogScreen
from cockpit.app.screens.lists.list_screen import ListScreen
from cockpit.app.state.kanban import summary
from cockpit.app.state.task_detail import queued_detail, queued_view
from cockpit.store.backlog.work_queue import Queued
from widgets.text.detail import DetailRow
from widgets.text.style_names import DIM, Part
from widgets.work.task_views import QueuedView
from widgets.work.two_line_list import TwoLineList


class QueueScreen(ListScreen[tuple[Queued, str]]):
    """Open tasks in the order in which workers claim them, each with what blocks it; live."""

    NAME = "Queue"
    EMPTY = "No open tasks. n creates one."
    NAME_CELLS = 10
    DEFAULT_CSS = """
    QueueScreen.-wide #list-rows { width: 3fr; }
    QueueScreen.-wide #list-detail { width: 2fr; }
    """

    async def read_rows(self) -> tuple[Sequence[tuple[Queued, str]], Sequence[str]]:
        rows, tasks = await task_reader.read_queue(self.host.engine.store), self.work.tasks
        blockers = {row.task_id: tasks[row.task_id].blocker for row in rows if row.task_id in tasks}
        return [(row, blockers.get(row.task_id, "")) for row in rows], ()

    def revision(self) -> object:
        return self.work.revision

    def describe(self) -> Sequence[Part]:
        most = task_reader.QUEUE_MOST
        first: list[Part] = [(f"the first {most:,}   ", DIM)] if len(self.rows) == most else []
        return [*first, (summary(self.work), DIM)]

    def draw_row(self, row: tuple[Queued, str]) -> QueuedView:
        return queued_view(*row)

    def draw_detail(self, row: tuple[Queued, str], detail: Any) -> Sequence[DetailRow]:
        return queued_detail(*row, self.rows.index(row) + 1, self.work.tasks)

    # Its keys are those of tasks.

    @property
    def task_id(self) -> str:
        return self.row[0].task_id if self.row is not None else ""

    @property
    def context(self) -> ActionContext:
        return self.task_context

    def takes(self, action: Action[Host]) -> bool:
        return BacklogScreen.takes(self, action)

    def update_hints(self) -> None:
        BacklogScreen.update_hints(self)

    def footer_actions(self) -> Sequence[Action[Host]]:
        """Return the actions that the footer may show: not the one that leads here."""
        return [action for action in super().footer_actions() if action.id != "queue"]

    def on_two_line_list_opened(self, event: TwoLineList.Opened) -> None:
        """Show the task in full."""
        from cockpit.app.screens.task_screen import TaskScreen

        event.stop()
        self.host.open_screen(TaskScreen(self.host, event.key))
