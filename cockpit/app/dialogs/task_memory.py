"""The memory of a task, in a dialog: its work in progress and its handoff.

Specified in ``docs/reference/backlog.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.content import Content

from cockpit.app import task_reader
from cockpit.app.dialogs.small_dialogs import Dialog
from cockpit.app.host import Host, LiveScreen
from cockpit.app.state.task_rows import handoff_rows, wip_rows
from cockpit.app.state.work import TaskState
from cockpit.core.errors import CockpitError
from cockpit.store.backlog.handoffs import Handoff
from cockpit.store.db.database import Store
from widgets.text.clean import clean
from widgets.text.detail import SheetRow, sheet
from widgets.text.detail_lines import DetailLines


class TaskMemoryDialog(LiveScreen, Dialog[None]):
    """A dialog with rows about one task, drawn again when the journal changes the task."""

    NAME = ""
    BINDINGS = [  # noqa: RUF012 -- Textual's way
        Binding("space,enter,q", "leave", "close", show=False),
        Binding("j", "scroll(1)", "down", show=False),
        Binding("k", "scroll(-1)", "up", show=False),
    ]

    def __init__(self, host: Host, task_id: str) -> None:
        super().__init__()
        self._host, self._task_id = host, task_id
        self.sheet = DetailLines()
        self.box = VerticalScroll(self.sheet, id="memory", classes="box")
        self._drawn = -1
        self._reading = False

    def compose(self) -> ComposeResult:
        yield self.box

    def on_mount(self) -> None:
        self.box.focus()
        self.paint()

    @property
    def task_state(self) -> TaskState:
        """The task as the journal tells it."""
        return self._host.state.work.tasks.get(self._task_id) or TaskState(self._task_id)

    def paint(self) -> None:
        """Draw the current state of the journal."""
        if not self.box.is_attached:
            return
        if self.task_state.revision != self._drawn and not self._reading:
            self._reading = True
            self._host.run_in_background(self._read_and_draw())

    async def _read_and_draw(self) -> None:
        store = self._host.engine.store
        try:
            while self.is_attached and self._drawn != self.task_state.revision:
                self._drawn = self.task_state.revision
                await self.read(store)
                self.draw()
        except CockpitError as error:
            self._host.show_error(str(error))
        finally:
            self._reading = False

    async def read(self, store: Store) -> None:
        """Read the parts that the journal does not contain."""
        raise NotImplementedError

    def rows(self) -> list[SheetRow]:
        """Return the rows to draw."""
        raise NotImplementedError

    def keys(self) -> str:
        """Return the keys of the dialog, as text."""
        return "esc back"

    def draw(self) -> None:
        """Draw the parts that were read."""
        task = self.task_state
        title = f"{self.NAME} · {task.task_id} {task.title}".strip()
        self.box.border_title = Content(clean(title, newlines=False))
        self.box.border_subtitle = Content(self.keys())
        self.sheet.show(sheet(self.rows()))

    def action_scroll(self, step: int) -> None:
        """Scroll by a line."""
        self.box.scroll_relative(y=step, animate=False)


class WipDialog(TaskMemoryDialog):
    """The work in progress of a task: everything that the next session needs to continue."""

    NAME = "Work in progress"

    _wip: Mapping[str, Any] | None = None

    async def read(self, store: Store) -> None:
        stored, _ = await task_reader.read_task(store, self._task_id)
        self._wip = stored.wip

    def rows(self) -> list[SheetRow]:
        return wip_rows(self.task_state, self._wip)


class HandoffDialog(TaskMemoryDialog):
    """The handoff of a task: its summary, and its details on a key."""

    NAME = "Handoff"
    BINDINGS = [Binding("d", "details", "details", show=False)]  # noqa: RUF012 -- Textual's way

    def __init__(self, host: Host, task_id: str) -> None:
        super().__init__(host, task_id)
        self._handoff: Handoff | None = None
        self._details = False

    async def read(self, store: Store) -> None:
        self._handoff = await task_reader.read_handoff(store, self._task_id)

    def rows(self) -> list[SheetRow]:
        return handoff_rows(self.task_state, self._handoff, details=self._details)

    def keys(self) -> str:
        if self._handoff is None or self._handoff.full_details is None:
            return "esc back"
        return f"d {'hide' if self._details else 'show'} details · esc back"

    def action_details(self) -> None:
        """Show or hide the details."""
        self._details = not self._details
        self.draw()
