"""A list over the whole screen: the detail of the row under the cursor, a filter, and verbs with keys.

Skills, tools, trust rules, notes and the others are instances: each says which rows there are, how a row and
its detail are drawn, and which verbs it takes. Specified in ``docs/reference/screen.md``, lists.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Container, Vertical
from textual.widgets import Input

from cockpit.app.actions.action import Action
from cockpit.app.actions.context import LISTS, ActionContext, Pane
from cockpit.app.dialogs.small_dialogs import without_blinking
from cockpit.app.host import Host
from cockpit.app.screens.backlog_screen import BacklogScreen
from cockpit.core.errors import CockpitError
from widgets.text.detail import Detail, DetailRow, sentence
from widgets.text.style_names import ACCENT, WARN, Part
from widgets.views import KeyHintView
from widgets.work.task_views import QueuedView
from widgets.work.two_line_list import TwoLineList

_EVERYWHERE = frozenset(
    {"palette", "help", "keys", "board", "queue", "stats", "theme", "quit", *LISTS}
)
_WIDE = 110
"""Columns from which the detail is drawn next to the list."""
_BETWEEN_S = 0.25
"""Least seconds between two readings, however fast the journal grows."""
_FILES_S = 2.0
"""Seconds after which a list that depends on files is read again."""
_BACK = KeyHintView("esc", "back", press="escape")
_CANCEL = KeyHintView("any other key", "cancel", press="escape")
_SCROLL = KeyHintView("J K", "scroll", press="J")
_SCROLLS = ("J", "K", "ctrl+down", "ctrl+up")


RowT = TypeVar("RowT")
"""A record that equals another one with the same content."""


class ListScreen(BacklogScreen, Generic[RowT]):
    """Rows with a cursor, and the detail of the row under it; live.

    Verbs are actions of the registry whose pane is :attr:`PANE`. One in :attr:`QUESTIONS` runs only after a
    second key, on exactly the row that was shown with the question.
    """

    PANE: Pane = ""
    EMPTY: str = "Nothing here yet."
    ENTER: Sequence[str] = ()
    """The verbs of Enter: the first one that the row takes runs."""
    QUESTIONS: Mapping[str, str] = {}
    """What ``y`` does, by verb."""
    READ_FIRST: Collection[str] = ("accept", "approve", "equal", "always")
    """Questions that ``y`` answers only after the whole detail has been on the screen."""
    READS_FILES: bool = False
    """Whether rows change without a row of the journal."""
    PLACEHOLDER: ClassVar[str] = "type to filter"
    FILTER: ClassVar[str] = "filter"
    """What the footer calls the field."""
    SHOWS_FIELD: ClassVar[bool] = False
    """Whether the field is always there."""
    NAME_CELLS: ClassVar[int] = 18
    """The most cells of the column of names."""
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (_WIDE, "-wide")]  # noqa: RUF012 -- Textual's way
    DEFAULT_CSS = """
    ListScreen #list-body { height: 1fr; layout: vertical; }
    ListScreen #list-rows { height: auto; width: 1fr; }
    ListScreen TwoLineList { height: auto; min-height: 4; max-height: 50vh; }
    ListScreen.-wide #list-rows, ListScreen.-wide TwoLineList { height: 1fr; max-height: 100vh; }
    ListScreen #list-detail { height: 1fr; width: 1fr; padding: 0 1; border-top: solid $rule; }
    ListScreen #list-filter { border: none; height: 1; padding: 0 1; background: transparent; }
    ListScreen.-wide #list-body { layout: horizontal; }
    ListScreen.-wide #list-detail { height: 1fr; border-top: none; border-left: solid $rule; }
    """
    BINDINGS = [  # noqa: RUF012 -- Textual's way
        Binding("slash", "filter", "filter", show=False),
        Binding("ctrl+down,J", "scroll(1)", "detail down", show=False),
        Binding("ctrl+up,K", "scroll(-1)", "detail up", show=False),
    ]

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._list = TwoLineList(empty="Reading…", click_opens=False, name_cells=self.NAME_CELLS)
        self._detail = Detail(id="list-detail")
        self._field = without_blinking(
            Input(placeholder=self.PLACEHOLDER, select_on_focus=False, id="list-filter")
        )
        self._rows: dict[str, RowT] = {}
        self._views: Sequence[QueuedView] = ()
        self._problems: Sequence[str] = ()
        self._question: tuple[str, str, RowT] | None = None
        """Verb, key and row that wait for the second key."""
        self._details: dict[str, tuple[int, Any]] = {}
        """What :meth:`read_detail` returned, by key, and at which reading of the rows."""
        self._readings = 0
        self._requested: object = object()
        self._drawn: object = None
        self._reading = self._reading_detail = False

    # What an instance says

    async def read_rows(self) -> tuple[Sequence[RowT], Sequence[str]]:
        """Return the rows, and what could not be read in sentences. Raises ``CockpitError``."""
        raise NotImplementedError

    def draw_row(self, row: RowT) -> QueuedView:
        """Return the two lines of a row; its key is unique."""
        raise NotImplementedError

    def draw_detail(self, row: RowT, detail: Any) -> Sequence[DetailRow]:
        """Return what is drawn about a row; ``detail`` is what :meth:`read_detail` returned, None before."""
        raise NotImplementedError

    def verbs(self, row: RowT) -> Mapping[str, str]:
        """Return what can be done with a row now: verbs, and what the footer calls each."""
        return {}

    async def do(self, verb: str, row: RowT) -> None:
        """Carry out a verb on a row. Raises ``CockpitError``."""

    async def read_detail(self, row: RowT) -> Any:
        """Read what the row itself does not have. Raises ``CockpitError``."""
        return ()

    def general_verbs(self) -> Mapping[str, str]:
        """Return what can be done without a row, likewise."""
        return {}

    def describe(self) -> Sequence[Part]:
        """Return the text behind the name of the screen."""
        return ()

    def revision(self) -> object:
        """Return what changes when the rows may have changed."""
        return self.host.session_id, self.host.state.seq

    def words(self, row: RowT) -> str:
        """Return text by which the filter finds a row, beyond what is drawn."""
        return ""

    def question(self, verb: str, row: RowT) -> str:
        """Return what ``y`` does to the row, for a verb of :attr:`QUESTIONS`."""
        return self.QUESTIONS[verb]

    def asks(self, verb: str) -> bool:
        """Whether ``y`` would now run this verb."""
        return self._question is not None and self._question[0] == verb

    def ask(self, question: str) -> None:
        """Put a text into the field."""
        self._field.value = question

    def find_rows(self, text: str) -> None:
        """Show the rows that have every word of ``text``, in any order and case."""
        wanted = text.casefold().split()
        views = self._views
        if wanted:
            views = [view for view in views if _matches(view, self._rows[view.key], self, wanted)]
        self._list.show(views)

    # The frame

    def compose(self) -> ComposeResult:
        yield self.headline
        with Container(id="list-body"):
            with Vertical(id="list-rows"):
                yield self._list
                yield self._field
            yield self._detail
        yield self.bar

    def on_mount(self) -> None:  # Textual calls the one of the base class as well
        self._field.display = self.SHOWS_FIELD
        self.watch(self._detail, "scroll_y", self._note_reading, init=False)
        if self.READS_FILES:
            self.set_interval(_FILES_S, self.read_again)

    @property
    def body(self) -> TwoLineList:
        return self._list

    @property
    def task_id(self) -> str:
        return ""

    @property
    def row(self) -> RowT | None:
        """The row under the cursor."""
        view = self._list.at_cursor
        return None if view is None else self._rows.get(view.key)

    @property
    def rows(self) -> Sequence[RowT]:
        """All rows, whatever the filter."""
        return tuple(self._rows.values())

    @property
    def filter(self) -> str:
        """What the user filters by; empty for all rows."""
        return self._field.value

    def takes(self, action: Action[Host]) -> bool:
        return action.pane == self.PANE or action.id in _EVERYWHERE

    @property
    def context(self) -> ActionContext:
        return ActionContext(pane=self.PANE, row_verbs=tuple(self._labels()))

    def _labels(self) -> Mapping[str, str]:
        row = self.row
        return {**(self.verbs(row) if row is not None else {}), **self.general_verbs()}

    def head(self) -> tuple[str, Sequence[Part]]:
        parts = [*self.describe()]
        if self._problems:
            parts.append((f"   {len(self._problems)} not used", WARN))
        if self.filter and len(self._list.rows) != len(self._views):
            listed = f"   {len(self._list.rows):,} of {len(self._views):,} listed"
            parts.append((listed, WARN))
        return self.NAME, parts

    def update_hints(self) -> None:
        """Show the verbs of the row under the cursor, or the second key of a question."""
        labels = self._labels()
        if self._question is not None:
            label, detail = labels.get(self._question[0], ""), self._detail
            hints = [_CANCEL]
            if self._has_unread():
                label = f"read on: {detail.seen:,} of {detail.count:,} lines shown"
                hints = [_SCROLL, _CANCEL]
            self.bar.show([KeyHintView("y", label, strong=True, press="y"), *hints])
            return
        first = self._verb_of_enter(labels)
        hints = []
        for verb, label in labels.items():
            (key, *_) = self.actions.get(f"{self.PANE}_{verb}").pane_keys
            shown = ("⏎", "enter") if verb == first else (key, key)
            hints.append(KeyHintView(shown[0], label, press=shown[1]))
        if self._views or self.FILTER != "filter":
            hints.append(KeyHintView("/", self.FILTER, press="slash"))
        if self.row is not None:
            hints.append(_SCROLL)
        self.bar.show([*hints, _BACK])

    # Keys

    def on_key(self, event: events.Key) -> None:
        """Take the second key, whatever it is."""
        if self._question is None or event.key in _SCROLLS:
            return
        verb, key, row = self._question
        if event.key == "y" and self._has_unread():
            event.stop()
            self._detail.read_on()
            return
        self._question = None
        if event.key in ("y", "escape"):
            event.stop()
        if event.key == "y" and self._rows.get(key) == row:
            self._run(verb, row)
        self._draw_detail()
        self.update_hints()

    def _has_unread(self) -> bool:
        """Whether ``y`` would answer for lines that have not been on the screen."""
        if self._question is None or self._question[0] not in self.READ_FIRST:
            return False
        is_whole = self._has_detail(self._question[1])
        return not is_whole or self._detail.seen < self._detail.count

    def on_resize(self) -> None:
        """Count again how much of the detail has been on the screen."""
        self.call_after_refresh(self._note_reading)

    def _note_reading(self) -> None:
        if self._question is not None:
            self.update_hints()

    def on_two_line_list_opened(self, event: TwoLineList.Opened) -> None:
        """Run the verb of Enter."""
        event.stop()
        if verb := self._verb_of_enter(self._labels()):
            self.run_verb(verb)

    def _verb_of_enter(self, labels: Mapping[str, str]) -> str:
        return next((verb for verb in self.ENTER if verb in labels), "")

    def run_verb(self, verb: str) -> None:
        """Run a verb on the row under the cursor, or ask for its second key."""
        row, view = self.row, self._list.at_cursor
        if verb in self.general_verbs():
            self.start(verb)
        elif row is None or view is None or verb not in self.verbs(row):
            return
        elif verb in self.QUESTIONS:
            self._question = (verb, view.key, row)
            self._draw_detail()
            self._detail.read_again()
            self.update_hints()
        else:
            self._run(verb, row)

    def start(self, verb: str) -> None:
        """Begin a verb of :meth:`general_verbs`."""

    def _run(self, verb: str, row: RowT) -> None:
        async def run() -> None:
            await self.do(verb, row)
            self.read_again()

        self.host.request(run)

    def action_scroll(self, step: int) -> None:
        """Scroll the detail by a few lines."""
        self._detail.scroll_relative(y=step * 5, animate=False)

    def action_filter(self) -> None:
        """Show the filter."""
        self._field.display = True
        self._field.focus()

    def action_leave(self) -> None:
        """Leave the filter, else this screen."""
        if self._field.display:
            self._field.value = ""
            self._leave_field()
        else:
            super().action_leave()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter while the user types."""
        event.stop()
        self.find_rows(event.value)
        self._after_rows()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Go back to the list; the filter stays."""
        event.stop()
        self._leave_field()

    def _leave_field(self) -> None:
        self._field.display = bool(self._field.value)
        self._list.focus()
        self._after_rows()

    def on_two_line_list_moved(self, event: TwoLineList.Moved) -> None:
        """Show another row."""
        event.stop()
        if self._question is not None and self._question[1] == event.key:
            return  # the list was drawn again
        self._question = None
        self._detail.scroll_home(animate=False)
        self._draw_detail()
        self.update_hints()

    # Reading and drawing

    def paint(self) -> None:
        super().paint()
        self._requested = self.revision()
        self._read_soon()

    def redraw(self) -> None:
        """Do nothing: lists do not depend on the backlog; :meth:`paint` reads them."""

    def read_again(self) -> None:
        """Read the rows again, whatever the journal says."""
        self._drawn = None
        self._read_soon()

    def _read_soon(self) -> None:
        if self._requested != self._drawn and not self._reading and self._list.is_attached:
            self._reading = True
            self.host.run_in_background(self._read_and_draw())

    async def _read_and_draw(self) -> None:
        """Read until the newest state is drawn."""
        try:
            while self.is_attached and self._requested != self._drawn:
                requested = self._drawn = self._requested
                rows, problems = await self.read_rows()
                if self.is_attached:
                    self._take(rows, problems)
                if requested != self._requested:
                    await asyncio.sleep(_BETWEEN_S)
        except (CockpitError, sqlite3.Error, OSError) as error:
            self._list.empty = f"Cannot be read: {error}"
            self._list.refresh()
            self.host.show_error(str(error))
        finally:
            self._reading = False
        if self.is_attached:
            super().paint()

    def _take(self, rows: Sequence[RowT], problems: Sequence[str]) -> None:
        unchanged = list(rows) == list(self._rows.values()) and problems == self._problems
        if unchanged and self._readings:
            self._after_rows()  # the headline may say something else
            return
        pairs = [(self.draw_row(row), row) for row in rows]
        self._rows = {view.key: row for view, row in pairs}
        self._views = [view for view, _ in pairs]
        self._problems = problems
        self._readings += 1
        self._list.empty = self.EMPTY
        if self._question is not None and self._rows.get(self._question[1]) != self._question[2]:
            self._question = None  # it is not what was asked about any more
        self.find_rows(self.filter)
        self._after_rows()

    def _after_rows(self) -> None:
        if self.filter and self._views:
            self._list.empty = "Nothing matches. esc shows all."
        self._draw_detail()
        name, parts = self.head()
        self.headline.show(name, parts, len(self.host.pending))
        self.update_hints()

    def _draw_detail(self) -> None:
        row, view = self.row, self._list.at_cursor
        rows = [sentence((problem, WARN)) for problem in self._problems]
        if row is not None and view is not None:
            if self._question is not None and self._question[1] == view.key:
                question = self.question(self._question[0], row)
                rows.append(sentence((f"y {question}, any other key does not", ACCENT)))
            _, detail = self._details.get(view.key, (0, None))
            rows += self.draw_detail(row, detail)
            if not self._has_detail(view.key) and not self._reading_detail:
                self._reading_detail = True
                self.host.run_in_background(self._read_detail())
        self._detail.display = bool(rows) or row is not None
        self._detail.show(rows)

    async def _read_detail(self) -> None:
        """Read until the detail of the row under the cursor is drawn."""
        try:
            while self.is_attached:
                row, view = self.row, self._list.at_cursor
                readings = self._readings
                if row is None or view is None or self._has_detail(view.key):
                    break
                detail = await self.read_detail(row)
                self._details[view.key] = (readings, detail)
        except (CockpitError, sqlite3.Error, OSError) as error:
            if view is not None:
                self._details[view.key] = (readings, None)
            self.host.show_error(str(error))
        finally:
            self._reading_detail = False
        if self.is_attached:
            self._draw_detail()
            self.update_hints()

    def _has_detail(self, key: str) -> bool:
        return self._details.get(key, (0, None))[0] == self._readings


def _matches(view: QueuedView, row: RowT, screen: ListScreen[RowT], wanted: Sequence[str]) -> bool:
    parts = (view.name, view.key, view.title, view.state, view.why, screen.words(row))
    text = "\n".join(parts).casefold()
    return all(word in text for word in wanted)
