"""The band meter: how the token budget of the current packet is spent, band by band."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
from textual import events
from textual.binding import Binding
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from widgets.bands.meter_history import (
    MEANING_CELLS,
    MEANINGS,
    history,
    legend_of_cache,
    legend_of_marks,
    meanings,
)
from widgets.text.clean import clean
from widgets.text.numerals import span, tokens
from widgets.text.style_names import CURSOR, DIM, RULE, STRONG, WARN, Part, band, line, spread
from widgets.views import BandView, CacheView, MeterView

_CALL = "in all "
"""What stands before the cost of the call, after those of its parts."""
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_BAR_LEAST = 8
_BAR_MOST = 64
_USED_CELLS = 6
_BAR_WIDE = 24
"""The bar keeps this many cells before there are words next to it."""
_HISTORY = 12
"""Waves that the pane would like to show."""
_WAVES_FIRST = 5
"""Waves that are shown before anything is explained."""


class BandMeter(Widget, can_focus=True):
    """Draw a :class:`MeterView`: one line per band, every bar on the same scale.

    A bar shows used tokens in the band's colour, dots up to the ceiling, and three marks: bold at the
    floor, broken at the target, thin at the ceiling. ``▲`` after the number marks a full band. Narrow
    panes lose the bar first, then the range. Lines below the bands have the legend and a line per wave.
    """

    DEFAULT_CSS = """
    BandMeter { height: auto; width: 1fr; padding: 0 1; text-wrap: nowrap; }
    """
    BINDINGS = [  # noqa: RUF012 -- Textual reads it as a class variable
        Binding("j,down", "move(1)", "next band", show=False),
        Binding("k,up", "move(-1)", "previous band", show=False),
        Binding("enter", "open", "list its facts", show=False),
    ]

    view: reactive[MeterView] = reactive(MeterView(), layout=True)
    cursor: reactive[int] = reactive(0)

    @dataclass
    class BandOpened(Message):
        """The user opened a band to list its facts."""

        name: str

    def show(self, view: MeterView) -> None:
        """Draw ``view``; the cursor stays on its band."""
        self.view = view

    def on_mount(self) -> None:
        self.border_title = Content("Bands")

    def watch_view(self, view: MeterView) -> None:
        self.cursor = max(0, min(self.cursor, len(view.bands) - 1))
        parts = [clean(view.profile, newlines=False)] if view.profile else []
        if view.waves_left is not None:
            waves = "wave" if view.waves_left == 1 else "waves"
            parts.append(f"{view.waves_left} {waves} left")
        self.border_subtitle = Content(" · ".join(parts)) if parts else None

    def action_move(self, step: int) -> None:
        """Move the cursor by ``step`` bands."""
        self.cursor = max(0, min(self.cursor + step, len(self.view.bands) - 1))

    def action_open(self) -> None:
        """Ask for the facts of the band under the cursor."""
        if self.view.bands:
            self.post_message(self.BandOpened(self.view.bands[self.cursor].name))

    def on_click(self, event: events.Click) -> None:
        """Open the band that was clicked."""
        place = event.y - self.gutter.top - 2
        if 0 <= place < len(self.view.bands):
            self.cursor = place
            self.action_open()

    def get_content_height(self, container: object, viewport: object, width: int) -> int:
        view = self.view
        if not view.bands:
            empty = len(self._empty(width))
            return empty + 1 + len(MEANINGS) if view.explains else empty
        below = 1 + len(legend_of_marks(width))
        waves = min(len(view.history), _HISTORY)
        return 2 + len(view.bands) + below + (2 + waves if waves else 0)

    def render(self) -> Content:
        width, height = self.content_size
        view = self.view
        if not view.bands:
            rows = self._empty(width)
            if view.explains and height > len(rows) + len(MEANINGS):
                rows += [Content(""), *meanings(width, list(MEANINGS))]
            return Content("\n").join(rows)
        columns = _Columns.fit(view, width)
        rows = [self._summary(width), self._cache(width)]
        for place, row in enumerate(view.bands):
            content = columns.draw(row).truncate(width)
            if self.has_focus and place == self.cursor:
                content = content.pad_right(max(0, width - content.cell_length)).stylize(CURSOR)
            rows.append(content)
        rows += self._below(width, height - len(rows), has_meanings=columns.meaning > 0)
        return Content("\n").join(rows)

    def _empty(self, width: int) -> list[Content]:
        return line((self.view.empty, DIM)).wrap(max(1, width))

    def _below(self, width: int, room: int, *, has_meanings: bool) -> list[Content]:
        """Draw in ``room`` lines below the bands: the legend, what the bands hold, and the waves.

        A few waves come first; then what explains the bands, then the earlier waves.
        """
        view = self.view
        waves = 2 + min(len(view.history), _WAVES_FIRST) if view.history else 0
        names = [] if has_meanings else [row.name for row in view.bands]
        sections: list[list[Content]] = []
        for section in (legend_of_marks(width), meanings(width, names), legend_of_cache(width)):
            if section and room - waves > len(section):
                sections.append(section)
                room -= len(section) + 1
        if drawn := history(view, width, room - 1):
            sections.append(drawn)
        return [each for section in sections for each in (Content(""), *section)]

    def _summary(self, width: int) -> Content:
        view = self.view
        used: list[Part] = [
            (f"{view.token_sent:,}", STRONG),
            (f" / {view.token_budget:,}", DIM),
        ]
        left = line(("Context", STRONG), "  ", *used)
        digest: list[Part] = [("packet ", DIM), view.digest[:8]] if view.digest else []
        facts: list[Part] = [(f"{view.facts:,} facts", DIM)] if view.facts else []
        if view.dropped:
            facts.append((f" · {view.dropped:,} dropped", DIM))
        for right in (line(*digest, "   ", *facts), line(*digest)):
            if left.cell_length + right.cell_length + 2 <= width:
                return spread(left, right, width)
        return left if left.cell_length <= width else line(*used).truncate(width)

    def _cache(self, width: int) -> Content:
        """How much of the prompt the provider's cache has, in tokens and, where there is room, in money."""
        cache = self.view.cache
        if cache is None:
            return Content("")
        content = Content("")
        for shown, short, label in (
            (cache, False, _CALL),
            (_without_costs(cache), False, _CALL),
            (cache, True, _CALL),
            (cache, True, ""),
        ):
            content = _cache_line(shown, short=short, label=label)
            if content.cell_length <= width:
                return content
        # An amount of money that is cut off would say another one.
        bare = _cache_line(msgspec.structs.replace(cache, cost=""), short=True)
        return bare.truncate(width, ellipsis=True)


def _without_costs(cache: CacheView) -> CacheView:
    return msgspec.structs.replace(cache, costs=("", ""))


def _cache_line(cache: CacheView, *, short: bool, label: str = "") -> Content:
    """Draw one line; ``short`` rounds the tokens, has wider gaps for dots and the call's cost alone."""
    costs = ("", "") if short else cache.costs
    of_cached, of_new = (f" {clean(cost, newlines=False)}" if cost else "" for cost in costs)
    gap = "  " if short else " · "
    cached, new = (tokens(count) if short else f"{count:,}" for count in (cache.cached, cache.new))
    parts: list[Part] = [("cached ", DIM), cached, (of_cached, DIM)]
    parts += [(f"{gap}new ", DIM), new, (of_new, DIM)]
    if cache.cost:
        parts += [(f"{gap}{label}", DIM), clean(cache.cost, newlines=False)]
    return line(*parts)


class _Columns(msgspec.Struct, frozen=True):
    """The widths of the columns of one drawing: 0 leaves a column out."""

    name: int
    bar: int
    range: int
    dropped: int
    scale: int
    cost: int = 0
    meaning: int = 0

    @classmethod
    def fit(cls, view: MeterView, width: int) -> _Columns:
        name = max(len(clean(row.name, newlines=False)) for row in view.bands)
        ranges = max(len(span(row.floor, row.ceiling)) for row in view.bands)
        drops = max(len(_dropped(row)) for row in view.bands)
        scale = max(1, *(max(row.ceiling, row.used) for row in view.bands))
        costs = max(len(clean(row.cost, newlines=False)) for row in view.bands)
        fixed = name + 1 + _USED_CELLS + 2
        bar = width - fixed - 1 - ranges - 2 - (drops + 2 if drops else 0)
        cost = costs if costs and bar - costs - 2 >= _BAR_LEAST else 0
        bar -= cost + 2 if cost else 0
        if bar >= _BAR_LEAST:
            meaning = MEANING_CELLS if bar - MEANING_CELLS - 2 >= _BAR_WIDE else 0
            bar -= meaning + 2 if meaning else 0
            return cls(name, min(bar, _BAR_MOST), ranges, drops, scale, cost, meaning)
        bar = width - fixed - 1 - ranges - 2
        if bar >= _BAR_LEAST:
            return cls(name, bar, ranges, 0, scale)
        if width >= fixed + ranges + 2:
            return cls(name, 0, ranges, 0, scale)
        return cls(min(name, max(3, width - _USED_CELLS - 3)), 0, 0, 0, scale)

    def draw(self, row: BandView) -> Content:
        accent = band(row.name)
        name = Content.styled(clean(row.name, newlines=False), accent)
        parts: list[Content] = [name.truncate(self.name, ellipsis=True, pad=True), Content(" ")]
        if self.bar:
            parts += [self._bar(row, accent), Content(" ")]
        full = row.used >= row.ceiling > 0
        style = STRONG if row.used else DIM
        parts.append(line((f"{tokens(row.used):>{_USED_CELLS}}", style)))
        parts.append(line(("▲ " if full else "  ", WARN)))
        if self.range:
            parts.append(line((f"{span(row.floor, row.ceiling):<{self.range}}", DIM)))
        if self.cost:
            parts.append(line("  ", f"{clean(row.cost, newlines=False):>{self.cost}}"))
        if self.dropped:
            parts.append(line((f"  {_dropped(row):<{self.dropped}}", DIM)))
        if self.meaning:
            parts.append(line("  ", (MEANINGS.get(row.name, ""), DIM)))
        return Content("").join(parts)

    def _bar(self, row: BandView, accent: str) -> Content:
        eighths = _scaled(row.used, self.scale, self.bar * 8)
        if row.used and not eighths:
            eighths = 1
        whole, part = divmod(eighths, 8)
        ceiling = min(self.bar, max(1, _scaled(row.ceiling, self.scale, self.bar)))
        cells: list[tuple[str, str]] = []
        for cell in range(self.bar):
            if cell < whole:
                cells.append(("█", accent))
            elif cell == whole and part:
                cells.append((_EIGHTHS[part], accent))
            elif cell < ceiling - 1:
                cells.append(("·", RULE))
            elif cell == ceiling - 1:
                cells.append(("│", RULE))
            else:
                cells.append((" ", ""))
        floor = min(self.bar - 1, _scaled(row.floor, self.scale, self.bar))
        if row.floor > 0 and floor == ceiling - 1 > 0 and row.ceiling > row.floor:
            floor -= 1
        least = floor + 1 if row.floor > 0 else 0
        if row.floor < row.target < row.ceiling and least < ceiling - 1:
            target = _scaled(row.target, self.scale, self.bar)
            cells[max(least, min(target, ceiling - 2))] = ("╎", STRONG)
        if row.floor > 0:
            cells[floor] = ("┃", STRONG)
        return _runs(cells)


def _scaled(value: int, scale: int, cells: int) -> int:
    """Place ``value`` on a scale of ``cells`` cells, rounding half up, in whole numbers."""
    return max(0, (2 * value * cells + scale) // (2 * scale))


def _dropped(row: BandView) -> str:
    return f"−{row.dropped:,}" if row.dropped else ""


def _runs(cells: list[tuple[str, str]]) -> Content:
    """Join neighbouring cells of one style: fewer spans to draw."""
    runs: list[tuple[str, str]] = []
    for text, style in cells:
        if runs and runs[-1][1] == style:
            runs[-1] = (runs[-1][0] + text, style)
        else:
            runs.append((text, style))
    return line(*runs)
