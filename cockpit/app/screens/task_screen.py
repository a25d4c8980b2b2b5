"""One task over the whole screen.

Specified in ``docs/reference/screen.md``.
"""

from __future__ import annotations

from collections.abc import Sequence

from cockpit.app import task_reader
from cockpit.app.actions.action import Action
from cockpit.app.host import Host
from cockpit.app.screens.backlog_screen import BacklogScreen
from cockpit.app.state.task_detail import TaskRecord, task_view
from cockpit.core.errors import CockpitError
from widgets.text.style_names import DIM, Part
from widgets.work.task_panel import TaskPanel


class TaskScreen(BacklogScreen):
    """Description, dependencies, status and activity of a task; live."""

    NAME = "Task"

    def __init__(self, host: Host, task_id: str) -> None:
        super().__init__(host)
        self._task_id = task_id
        self._panel = TaskPanel()
        self._detail: TaskRecord | None = None
        self._revision_read = -1
        self._drawing = False

    @property
    def body(self) -> TaskPanel:
        return self._panel

    @property
    def task_id(self) -> str:
        return self._task_id

    def footer_actions(self) -> Sequence[Action[Host]]:
        return [action for action in super().footer_actions() if action.id != "open_task"]

    def head(self) -> tuple[str, Sequence[Part]]:
        return self.NAME, [(self._task_id, DIM)]

    def redraw(self) -> None:
        if not self._drawing:
            self._drawing = True
            self.host.run_in_background(self._draw())

    async def _draw(self) -> None:
        """Draw until the newest revision is drawn."""
        revision_drawn = -1
        try:
            while self.is_attached and revision_drawn != self._revision:
                revision_drawn = self._revision
                task = self.work.tasks.get(self._task_id)
                if task is None:
                    return
                if task.revision != self._revision_read:
                    self._revision_read = task.revision
                    await self._read()
                self._panel.show(task_view(self.work, task, self._detail))
        finally:
            self._drawing = False

    async def _read(self) -> None:
        try:
            self._detail = await task_reader.read_task_detail(self.host.engine.store, self._task_id)
        except CockpitError as error:
            self.host.show_error(str(error))
