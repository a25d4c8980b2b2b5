"""Measures one below the other: a number, its aim, and its history as a line of bars."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import msgspec
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget
from textual.widgets import Static

from widgets.text.tone import ACCENT, DIM, STRONG, Part, line, tone

_NAME = 32
_BARS = "▁▂▃▄▅▆▇█"
_BAR_CELLS = 8


class MeasureView(msgspec.Struct, frozen=True):
    """One measure."""

    name: str
    value: str
    """The number as it is written."""
    aim: str = ""
    """The value to aim at."""
    note: str = ""
    series: tuple[float, ...] = ()
    """The numbers that the measure is made of, oldest first."""
    span: str = ""
    """A description of ``series``."""
    change: str = ""
    """The difference from an earlier period."""
    tone: str = ""
    """The tone of ``change``: ``good``, ``bad`` or empty."""


class MeasureList(VerticalScroll, can_focus=True):
    """Draw measures; it scrolls when they do not fit. Posts nothing."""

    DEFAULT_CSS = """
    MeasureList { height: 1fr; width: 1fr; padding: 1 1 0 1; }
    MeasureRow { height: 2; margin: 0 0 1 0; }
    MeasureRow > .measure-words { width: 1fr; height: 2; text-wrap: nowrap; text-overflow: ellipsis; }
    MeasureRow > .measure-line { width: 1fr; max-width: 80; height: 2; margin: 0 0 0 2; }
    MeasureRow Spark { height: 1; width: 1fr; }
    MeasureRow .measure-span { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
    """
    BINDINGS = [  # noqa: RUF012 -- Textual reads it as a class variable
        Binding("j", "scroll_down", "down", show=False),
        Binding("k", "scroll_up", "up", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 -- Textual's name for it
        super().__init__(id=id)
        self._views: tuple[MeasureView, ...] = ()

    @property
    def views(self) -> Sequence[MeasureView]:
        """The drawn measures."""
        return self._views

    async def show(self, views: Sequence[MeasureView]) -> None:
        """Draw ``views``; rows that did not change stay."""
        if tuple(views) == self._views:
            return
        self._views = tuple(views)
        rows = list(self.query(MeasureRow))
        for row, view in zip(rows, views, strict=False):
            row.show(view)
        for row in rows[len(views) :]:
            await row.remove()
        await self.mount_all([MeasureRow(view) for view in views[len(rows) :]])


class MeasureRow(Horizontal):
    """One measure: text at the left, its bars at the right."""

    def __init__(self, view: MeasureView) -> None:
        super().__init__()
        self._view = view

    def compose(self) -> ComposeResult:
        yield Static(classes="measure-words")
        with Vertical(classes="measure-line"):
            yield Spark()
            yield Static(classes="measure-span")

    def on_mount(self) -> None:
        self.show(self._view)

    def show(self, view: MeasureView) -> None:
        """Draw another view of the same measure."""
        self._view = view
        self.query_one(".measure-words", Static).update(_words(view))
        self.query_one(Spark).series = view.series
        self.query_one(".measure-span", Static).update(line((view.span, DIM)))


class Spark(Widget):
    """A line of bars, one a number, from zero up to the highest; numbers that do not fit are averaged.

    Textual's own starts at the lowest number: two workers at 100% would look like two at 0%.
    """

    series: reactive[tuple[float, ...]] = reactive(())

    def render(self) -> Content:
        return Content.styled(bars(self.series, self.content_size.width), ACCENT)


def bars(series: Sequence[float], width: int) -> str:
    """Return the bars in at most ``width`` cells."""
    if not series or width < 1:
        return ""
    count = min(len(series), width)
    edges = [place * len(series) // count for place in range(count + 1)]
    means = [sum(series[start:end]) / (end - start) for start, end in pairwise(edges)]
    top = max(means)
    cells = min(_BAR_CELLS, width // count)
    drawn = [_BARS[round(each / top * (len(_BARS) - 1)) if top > 0 else 0] for each in means]
    return "".join((bar * (cells - 1) + " ") if cells > 1 else bar for bar in drawn)


def _words(view: MeasureView) -> Content:
    head: list[Part] = [(view.name.ljust(_NAME), ""), (view.value, STRONG)]
    if view.change:
        head += ["  ", (view.change, tone(view.tone) or DIM)]
    below = view.note + (f" · aim {view.aim}" if view.aim else "")
    return Content("\n").join([line(*head), line((below, DIM))])
