"""Measures one below the other: a number, its aim, and its history as a line of bars."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import msgspec
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget
from textual.widgets import Static

from widgets.text.style_names import ACCENT, BAD, DIM, GOOD, STRONG, Part, line, tone

_NAME = 32
_BARS = " ▁▂▃▄▅▆▇█"
_BAR_CELLS = 16
_WIDE = 200
"""From this many columns on there are two columns of measures."""
_NARROW = 120
"""Below this many columns the bars are below the text, which then has the whole width."""
_HIGH, _HIGHEST = 4, 7
"""Lines of a measure with high bars, and with the highest."""
_AIMS = {
    True: ("✔ ", "aim met: ", GOOD),
    False: ("✗ ", "aim missed: ", BAD),
    None: ("", "aim ", DIM),
}


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
    is_met: bool | None = None
    """Whether the aim is met; None without an aim, or where nothing was measured."""


class MeasureList(VerticalScroll, can_focus=True):
    """Draw measures, on wide screens in two columns, on high ones with higher bars, on narrow ones with the
    bars below the text. Posts nothing.

    It scrolls when they do not fit. Whether an aim is met has a sign and a colour.
    """

    DEFAULT_CSS = """
    MeasureList { height: 1fr; width: 1fr; padding: 1 1 0 1; }
    MeasureRow { height: 2; margin: 0 0 1 0; }
    MeasureRow > .measure-words { width: 1fr; height: 2; text-wrap: nowrap; text-overflow: ellipsis; }
    MeasureRow > .measure-line { width: 1fr; height: 2; margin: 0 0 0 2; }
    MeasureRow Spark { height: 1; width: 1fr; }
    MeasureList.-high .measure-words { height: 4; text-wrap: wrap; }
    MeasureList.-high MeasureRow, MeasureList.-high .measure-line { height: 4; }
    MeasureList.-high Spark { height: 3; }
    MeasureList.-highest MeasureRow, MeasureList.-highest .measure-line { height: 7; }
    MeasureList.-highest Spark { height: 6; }
    MeasureList.-wide { layout: grid; grid-size: 2; grid-rows: auto; grid-gutter: 1 4; }
    MeasureList.-wide MeasureRow { margin: 0; }
    MeasureList.-stacked MeasureRow { layout: vertical; height: 3; }
    MeasureList.-stacked .measure-line { layout: horizontal; height: 1; margin: 0; }
    MeasureList.-stacked Spark { width: 24; margin: 0 2 0 0; }
    MeasureRow .measure-span { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
    """
    BINDINGS = [  # noqa: RUF012 -- Textual reads it as a class variable
        Binding("j", "scroll_down", "down", show=False),
        Binding("k", "scroll_up", "up", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 -- Textual's name for it
        super().__init__(id=id)
        self._views: tuple[MeasureView, ...] = ()

    def on_resize(self, event: events.Resize) -> None:
        """Use the room: two columns, and higher bars where all rows fit with them."""
        columns = 2 if event.size.width >= _WIDE else 1
        rows = -(-len(self._views) // columns)
        is_stacked = event.size.width < _NARROW
        room = 0 if is_stacked or not rows else (event.size.height - 1) // rows - 1
        is_high, is_highest = room >= _HIGH, room >= _HIGHEST
        self.update_classes(
            {
                "-wide": columns == 2,
                "-high": is_high,
                "-highest": is_highest,
                "-stacked": is_stacked,
            }
        )

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
        self.on_resize(events.Resize(self.size, self.virtual_size))


class MeasureRow(Horizontal):
    """One measure: text at the left, its bars at the right."""

    def __init__(self, view: MeasureView) -> None:
        super().__init__()
        self._view = view
        # Held, not looked up: where the program ends as a row comes, the children may be gone by then.
        self._words = Static(classes="measure-words")
        self._spark = Spark()
        self._span = Static(classes="measure-span")

    def compose(self) -> ComposeResult:
        yield self._words
        with Vertical(classes="measure-line"):
            yield from (self._spark, self._span)

    def on_mount(self) -> None:
        self.show(self._view)

    def show(self, view: MeasureView) -> None:
        """Draw another view of the same measure."""
        self._view = view
        self._words.update(_words(view))
        self._spark.series = view.series
        self._span.update(line((view.span, DIM)))


class Spark(Widget):
    """A line of bars, one a number, from zero up to the highest; numbers that do not fit are averaged.

    Textual's own starts at the lowest number: two workers at 100% would look like two at 0%.
    """

    series: reactive[tuple[float, ...]] = reactive(())

    def render(self) -> Content:
        return Content.styled(bars(self.series, *self.content_size), ACCENT)


def bars(series: Sequence[float], width: int, height: int = 1) -> str:
    """Return the bars in at most ``width`` cells and exactly ``height`` lines."""
    if not series or width < 1:
        return ""
    count = min(len(series), width)
    edges = [place * len(series) // count for place in range(count + 1)]
    means = [sum(series[start:end]) / (end - start) for start, end in pairwise(edges)]
    top = max(means)
    cells = min(_BAR_CELLS, width // count)
    most = height * 8 - 1
    eighths = [1 + round(each / top * most) if top > 0 else 1 for each in means]
    lines = []
    for row in reversed(range(height)):
        drawn = [_BARS[min(max(count - 8 * row, 0), 8)] for count in eighths]
        lines.append("".join((bar * (cells - 1) + " ") if cells > 1 else bar for bar in drawn))
    return "\n".join(lines)


def _words(view: MeasureView) -> Content:
    sign, says, style = _AIMS[view.is_met]
    value = STRONG if view.is_met is None else f"bold {style}"
    head: list[Part] = [(view.name.ljust(_NAME), ""), (sign, value), (view.value, value)]
    if view.change:
        head += ["  ", (view.change, tone(view.tone) or DIM)]
    below: list[Part] = [(says + view.aim, style), (" · ", DIM)] if view.aim else []
    below.append((view.note, DIM))
    return Content("\n").join([line(*head), line(*below)])
