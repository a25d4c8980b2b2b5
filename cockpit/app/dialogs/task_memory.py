"""What a task remembers, in a box over the screen: its work in progress, and what it handed over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.content import Content

from cockpit.app import task_reader
from cockpit.app.dialogs.question import Dialog
from cockpit.app.overlay import Live
from cockpit.app.projection.backlog import TaskState
from cockpit.app.projection.task_detail import handoff_view, wip_view
from cockpit.core.errors import CockpitError
from cockpit.store.backlog.handoffs import Handoff
from cockpit.store.db.database import Store
from widgets.forms.key_values import Sheet, SheetRow
from widgets.text.clean import clean
from widgets.work.task_memory import handoff_rows, wip_rows

if TYPE_CHECKING:
    from cockpit.app.screens.cockpit_screen import CockpitScreen


class Memory(Live, Dialog[None]):
    """A box with the rows of one task, drawn anew when the journal tells of the task."""

    ABOUT = ""
    BINDINGS = [  # noqa: RUF012 -- Textual's way
        Binding("space,enter,q", "leave", "close", show=False),
        Binding("j", "scroll(1)", "down", show=False),
        Binding("k", "scroll(-1)", "up", show=False),
    ]

    def __init__(self, main: CockpitScreen, task_id: str) -> None:
        super().__init__()
        self.main, self.task_id = main, task_id
        self.sheet = Sheet()
        self.box = VerticalScroll(self.sheet, id="memory", classes="box")
        self._seq = -1
        self._reading = False

    def compose(self) -> ComposeResult:
        yield self.box

    def on_mount(self) -> None:
        self.box.focus()
        self.paint()

    @property
    def state(self) -> TaskState:
        """The task as the journal tells it."""
        tasks = self.main.cockpit.feed.state.work.tasks
        return tasks.get(self.task_id) or TaskState(self.task_id)

    def paint(self) -> None:
        """Draw what the journal says now; called whenever the cockpit's own screen is drawn."""
        if not self.box.is_attached:
            return
        if self.state.seq != self._seq and not self._reading:
            self._reading = True
            self.main.cockpit.do(self._read())

    async def _read(self) -> None:
        store = self.main.cockpit.engine.store
        try:
            while self.is_attached and self._seq != self.state.seq:
                self._seq = self.state.seq
                await self.read(store)
                self.draw()
        except CockpitError as error:
            self.main.cockpit.tell(str(error))
        finally:
            self._reading = False

    async def read(self, store: Store) -> None:
        """Read what the journal does not hold."""
        raise NotImplementedError

    def rows(self) -> list[SheetRow]:
        """What is shown."""
        raise NotImplementedError

    def keys(self) -> str:
        """The keys that do something, in words."""
        return "esc back"

    def draw(self) -> None:
        """Draw what was read."""
        task = self.state
        title = f"{self.ABOUT} · {task.task_id} {task.title}".strip()
        self.box.border_title = Content(clean(title, newlines=False))
        self.box.border_subtitle = Content(self.keys())
        self.sheet.show(self.rows())

    def action_scroll(self, step: int) -> None:
        """Scroll by a line."""
        self.box.scroll_relative(y=step, animate=False)


class WipInspector(Memory):
    """A task's work in progress: all that whoever goes on has to know."""

    ABOUT = "Work in progress"

    def __init__(self, main: CockpitScreen, task_id: str) -> None:
        super().__init__(main, task_id)
        self._view = wip_view(self.state, None)

    async def read(self, store: Store) -> None:
        stored, _ = await task_reader.task(store, self.task_id)
        self._view = wip_view(self.state, stored.wip)

    def rows(self) -> list[SheetRow]:
        return wip_rows(self._view)


class HandoffInspector(Memory):
    """What a task handed over: the summary, and its details on a key."""

    ABOUT = "Handoff"
    BINDINGS = [Binding("d", "details", "details", show=False)]  # noqa: RUF012 -- Textual's way

    def __init__(self, main: CockpitScreen, task_id: str) -> None:
        super().__init__(main, task_id)
        self._handoff: Handoff | None = None
        self._details = False

    async def read(self, store: Store) -> None:
        self._handoff = await task_reader.handoff(store, self.task_id)

    def rows(self) -> list[SheetRow]:
        return handoff_rows(handoff_view(self.state, self._handoff, details=self._details))

    def keys(self) -> str:
        if self._handoff is None or self._handoff.full_details is None:
            return "esc back"
        return f"d {'without details' if self._details else 'details'} · esc back"

    def action_details(self) -> None:
        """Show the details, or not any more."""
        self._details = not self._details
        self.draw()
