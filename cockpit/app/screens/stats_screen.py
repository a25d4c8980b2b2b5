"""The measures over the whole screen: results of chains and workers, in a period that a key changes.

Specified in ``docs/reference/measures.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime, timedelta

from textual.binding import Binding

from cockpit.app.dialogs.small_dialogs import Ask
from cockpit.app.host import Host
from cockpit.app.screens.backlog_screen import BacklogScreen
from cockpit.chains.report.measure import Measure
from cockpit.chains.report.measures import OPEN, measure_chains, newest_row
from cockpit.core.clock import format_time
from cockpit.core.errors import CockpitError
from widgets.text.style_names import DIM, Part
from widgets.views import KeyHintView
from widgets.work.measure_list import MeasureList, MeasureView

_PERIODS: tuple[tuple[str, int], ...] = (
    ("all time", 0),
    ("the last 30 days", 30),
    ("the last 7 days", 7),
    ("the last day", 1),
)
"""Name, and days; 0 for all time."""
_HINTS = (
    KeyHintView("← →", "period", press="right"),
    KeyHintView("p", "before and after a date", press="p"),
    KeyHintView("esc", "back", press="escape"),
)
_TONES = {True: "good", False: "bad", None: ""}


class StatsScreen(BacklogScreen):
    """Every measure with its history as a line; live."""

    NAME = "Measures"
    BINDINGS = [  # noqa: RUF012 -- Textual's way
        Binding("left,h", "turn(-1)", "longer", show=False),
        Binding("right,l", "turn(1)", "shorter", show=False),
        Binding("p", "compare", "before and after a date", show=False),
    ]

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._list = MeasureList()
        self._period = 0
        self._date = ""
        # Period, date and newest journal row: of the request, and of the drawn measures.
        self._requested = ("", "", -1)
        self._drawn = ("", "", -1)
        self._reading = False

    @property
    def body(self) -> MeasureList:
        return self._list

    @property
    def task_id(self) -> str:
        return ""

    def head(self) -> tuple[str, Sequence[Part]]:
        if self._date:
            return self.NAME, [(f"from {self._date} on, compared with before", DIM)]
        return self.NAME, [(_PERIODS[self._period][0], DIM)]

    def update_hints(self) -> None:
        self.bar.show(_HINTS)

    def action_turn(self, step: int) -> None:
        """Choose a longer or a shorter period."""
        self._period = max(0, min(self._period + step, len(_PERIODS) - 1))
        self._date = ""
        self.paint()

    def action_compare(self) -> None:
        """Ask for a date, and compare the measures before and after; an empty date ends that."""

        def choose(date: str | None) -> None:
            if date is None:
                return
            try:
                self._date = datetime.fromisoformat(date).date().isoformat() if date else ""
            except ValueError:
                self.host.show_error(f"{date!r} is not a date. Write it like 2026-01-05.")
            self.paint()

        question = "A date in UTC, for example 2026-01-05. Leave it empty to stop comparing."
        self.app.push_screen(Ask("Before and after", question, value=self._date), choose)

    def paint(self) -> None:
        super().paint()
        self._requested = (_PERIODS[self._period][0], self._date, self.host.state.seq)
        if self._requested != self._drawn and not self._reading and self._list.is_attached:
            self._reading = True
            self.host.run_in_background(self._read_and_draw())

    def redraw(self) -> None:
        """Do nothing: the measures do not depend on the backlog; :meth:`paint` reads them."""

    async def _read_and_draw(self) -> None:
        """Read until the newest state is drawn."""
        store, measured = self.host.engine.store, ("", "", -1)
        try:
            while self.is_attached and self._requested != self._drawn:
                requested = self._requested
                row = await store.read(newest_row)
                if (*requested[:2], row) != measured:
                    measured = (*requested[:2], row)
                    await self._list.show(await store.read(self._measure))
                self._drawn = requested
        except CockpitError as error:
            self.host.show_error(str(error))
        finally:
            self._reading = False

    def _measure(self, connection: sqlite3.Connection) -> list[MeasureView]:
        if self._date:
            before = measure_chains(connection, "", self._date).rows
            after = measure_chains(connection, self._date, OPEN).rows
            return [_view(row, then) for row, then in zip(after, before, strict=True)]
        days = _PERIODS[self._period][1]
        now = self.host.engine.store.clock.now()
        since = format_time(now - timedelta(days=days)) if days else ""
        return [_view(row) for row in measure_chains(connection, since, OPEN).rows]


def _view(row: Measure, before: Measure | None = None) -> MeasureView:
    change, better = ("", None) if before is None else row.change_since(before)
    return MeasureView(
        row.name,
        row.shown,
        row.aim,
        row.detail,
        tuple(row.series),
        row.span,
        "" if before is None else f"before {before.shown}, {change}",
        "" if before is None else _TONES[better],
        row.is_met,
    )
