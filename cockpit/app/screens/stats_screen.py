"""The measures over the whole screen: how sessions of chains did, in a time that a key changes."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from textual.binding import Binding

from cockpit.app.dialogs.question import Ask
from cockpit.app.screens.backlog_screen import WorkScreen
from cockpit.chains.report.measure_rows import (
    MeasureComparison,
    MeasureRow,
    compare_measures,
    measure_rows,
)
from cockpit.chains.report.measures import OPEN, measure_chains, newest_row
from cockpit.core.clock import format_time
from cockpit.core.errors import CockpitError
from widgets.text.tone import DIM, Part
from widgets.views import KeyHintView
from widgets.work.measure_views import MeasureView
from widgets.work.measures import MeasureList

if TYPE_CHECKING:
    from cockpit.app.screens.cockpit_screen import CockpitScreen

_TIMES: tuple[tuple[str, int], ...] = (
    ("since ever", 0),
    ("the last 30 days", 30),
    ("the last 7 days", 7),
    ("the last day", 1),
)
_HINTS = (
    KeyHintView("← →", "time"),
    KeyHintView("p", "before and after a date"),
    KeyHintView("esc", "back"),
)
_TONES = {True: "good", False: "bad", None: ""}


class StatsScreen(WorkScreen):
    """Every measure with a line of how it went; live."""

    NAME = "Measures"
    BINDINGS = [  # noqa: RUF012 -- Textual's way
        Binding("left,h", "turn(-1)", "longer", show=False),
        Binding("right,l", "turn(1)", "shorter", show=False),
        Binding("p", "compare", "before and after a date", show=False),
    ]

    def __init__(self, main: CockpitScreen) -> None:
        super().__init__(main)
        self._list = MeasureList()
        self._time = 0
        self._date = ""
        self._asked = ("", "", -1)
        self._shown = ("", "", -1)
        self._reading = False

    @property
    def body(self) -> MeasureList:
        return self._list

    @property
    def task_id(self) -> str:
        return ""

    def head(self) -> tuple[str, Sequence[Part]]:
        if self._date:
            return self.NAME, [(f"from {self._date} on, against what was before", DIM)]
        return self.NAME, [(_TIMES[self._time][0], DIM)]

    def words(self) -> None:
        self.bar.show(_HINTS)

    def action_turn(self, step: int) -> None:
        """Look at a longer or a shorter time."""
        self._time = max(0, min(self._time + step, len(_TIMES) - 1))
        self._date = ""
        self.paint()

    def action_compare(self) -> None:
        """Ask for a date, and compare what is before with what is after; none: no more."""

        def answered(date: str | None) -> None:
            if date is None:
                return
            try:
                self._date = datetime.fromisoformat(date).date().isoformat() if date else ""
            except ValueError:
                self.main.cockpit.tell(f"{date!r} is no date such as 2026-01-05.")
            self.paint()

        asked = "A date such as 2026-01-05, in UTC; empty: do not compare."
        self.app.push_screen(Ask("Before and after", asked, value=self._date), answered)

    def paint(self) -> None:
        super().paint()
        seq = self.main.cockpit.feed.state.seq
        self._asked = (_TIMES[self._time][0], self._date, seq)
        if self._asked != self._shown and not self._reading and self._list.is_attached:
            self._reading = True
            self.main.cockpit.do(self._read())

    def redraw(self) -> None:
        """The backlog is no part of it; what the journal tells is read in :meth:`paint`."""

    async def _read(self) -> None:
        """Read until nothing is newer than what is drawn."""
        cockpit, folded = self.main.cockpit, ("", "", -1)
        try:
            while self.is_attached and self._asked != self._shown:
                asked = self._asked
                row = await cockpit.engine.store.read(newest_row)
                if (*asked[:2], row) != folded:
                    folded = (*asked[:2], row)
                    await self._list.show(await cockpit.engine.store.read(self._look))
                self._shown = asked
        except CockpitError as error:
            cockpit.tell(str(error))
        finally:
            self._reading = False

    def _look(self, connection: sqlite3.Connection) -> list[MeasureView]:
        if self._date:
            before, after = (
                measure_chains(connection, "", self._date),
                measure_chains(connection, self._date),
            )
            pairs = zip(measure_rows(after), compare_measures(before, after), strict=True)
            return [_view(row, change) for row, change in pairs]
        days = _TIMES[self._time][1]
        now = self.main.cockpit.engine.store.clock.now()
        since = format_time(now - timedelta(days=days)) if days else ""
        return [_view(row) for row in measure_rows(measure_chains(connection, since, OPEN))]


def _view(row: MeasureRow, change: MeasureComparison | None = None) -> MeasureView:
    words = "" if change is None else f"before {change.before}, {change.change}"
    return MeasureView(
        row.name,
        row.shown,
        row.aim,
        row.detail,
        row.series,
        row.span,
        words,
        _TONES[change.better] if change is not None else "",
    )
