"""One task over the whole screen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cockpit.app import task_reader
from cockpit.app.actions.action import Action
from cockpit.app.projection.task_detail import Told, task_view
from cockpit.app.screens.backlog_screen import WorkScreen
from cockpit.core.errors import CockpitError
from widgets.text.tone import DIM, Part
from widgets.work.task import TaskPanel

if TYPE_CHECKING:
    from cockpit.app.screens.cockpit_screen import CockpitScreen


class TaskScreen(WorkScreen):
    """What is asked, what it hangs on, where it stands and what happened; live."""

    NAME = "Task"

    def __init__(self, main: CockpitScreen, task_id: str) -> None:
        super().__init__(main)
        self._task_id = task_id
        self._panel = TaskPanel()
        self._told: Told | None = None
        self._read_at = -1
        self._drawing = False

    @property
    def body(self) -> TaskPanel:
        return self._panel

    @property
    def task_id(self) -> str:
        return self._task_id

    def hinted(self) -> Sequence[Action]:
        return [each for each in super().hinted() if each.id != "open_task"]

    def head(self) -> tuple[str, Sequence[Part]]:
        return self.NAME, [(self._task_id, DIM)]

    def redraw(self) -> None:
        if not self._drawing:
            self._drawing = True
            self.main.cockpit.do(self._draw())

    async def _draw(self) -> None:
        """Draw until nothing is newer than what is drawn."""
        drawn = -1
        try:
            while self.is_attached and drawn != self._revision:
                drawn = self._revision
                task = self.work.tasks.get(self._task_id)
                if task is None:
                    return
                if task.seq != self._read_at:
                    self._read_at = task.seq
                    await self._read()
                await self._panel.show(task_view(self.work, task, self._told))
        finally:
            self._drawing = False

    async def _read(self) -> None:
        cockpit = self.main.cockpit
        try:
            self._told = await task_reader.told(cockpit.engine.store, self._task_id)
        except CockpitError as error:
            cockpit.tell(str(error))
