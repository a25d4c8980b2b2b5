"""A profile change: every band and rule before and after, and the checks of the guard."""

from __future__ import annotations

import msgspec
from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

from widgets.text.clean import clean
from widgets.text.style_names import BAD, DIM, GOOD, RULE, STRONG, WARN, Part, band, block, line
from widgets.views import BandChangeView, ProfileChangeView

_BAR_LEAST = 10
_BAR_MOST = 40
_NAME_LEAST = 6
_WORDS_LEAST = 8


class ProfileChange(Widget):
    """Draw a :class:`ProfileChangeView`: two bars for a band that changes, one for a band that does not.

    A bar runs from a band's floor to its ceiling on one scale for all, with a mark at its target.
    Narrow panes lose the bars, never the numbers. Nothing is cut off: the user decides on it.
    """

    DEFAULT_CSS = "ProfileChange { height: auto; width: 1fr; margin: 0 0 1 0; text-wrap: nowrap; }"

    def __init__(self, view: ProfileChangeView) -> None:
        super().__init__()
        self._view = view

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._rows(width))

    def render(self) -> Content:
        return Content("\n").join(self._rows(self.content_size.width))

    def _rows(self, width: int) -> list[Content]:
        view = self._view
        rows: list[Content] = []
        if view.reason:
            rows += _hung("because  ", view.reason, width)
        rows += _hung("duration ", f"{view.duration} · {view.base}", width)
        before, after = view.budget
        if before != after:
            rows += _hung("budget   ", f"{before:,} → {after:,} tokens", width)
        for reads in view.reads:
            rows += _hung("reads    ", f"without asking: {reads}", width, WARN)
        if view.bands:
            rows += [Content(""), *_bands(view.bands, width)]
        if view.rules:
            rows.append(Content(""))
            for rule in view.rules:
                change = f"{rule.before or 'none'} → {rule.after or 'none'}"
                rows += _hung(f"{rule.name}  ", change, width, STRONG)
        rows.append(Content(""))
        if not view.verdict:
            rows.append(line(("! the guard reported no checks", WARN)))
        for entry in view.verdict:
            sign, style = ("✔", GOOD) if entry.ok else ("✗", BAD)
            head = f"guard {sign} {entry.code}  "
            rows += _hung(head, entry.message, width, style)
        return rows


class _Shape(msgspec.Struct, frozen=True):
    """The widths of one drawing: 0 cells of bar leave it out. ``scale`` is in tokens."""

    name: int
    numbers: int
    bar: int
    scale: int

    @classmethod
    def fit(cls, bands: tuple[BandChangeView, ...], width: int) -> _Shape:
        name = max(len(clean(row.name, newlines=False)) for row in bands)
        numbers = max(len(_numbers(side)) for row in bands for side in (row.before, row.after))
        scale = max(1, *(max(row.before[2], row.after[2]) for row in bands))
        name = max(_NAME_LEAST, min(name, width - numbers - 4))
        bar = width - name - numbers - 6
        return cls(name, numbers, min(bar, _BAR_MOST) if bar >= _BAR_LEAST else 0, scale)


def _bands(bands: tuple[BandChangeView, ...], width: int) -> list[Content]:
    shape = _Shape.fit(bands, width)
    head = f"{'':<{shape.name + 4}}{'floor · target · ceiling':>{shape.numbers}}"
    rows = [line((head, DIM)).truncate(width, ellipsis=True)]
    for row in bands:
        accent = band(row.name)
        name = Content.styled(clean(row.name, newlines=False), accent)
        name = name.truncate(shape.name, ellipsis=True, pad=True)
        if row.before == row.after:
            rows.append(Content.assemble(name, _side("  = ", row.after, None, "", DIM, shape)))
            continue
        old = _side("    ", row.before, None, "", DIM, shape)
        new = _side("  → ", row.after, row.before, accent, STRONG, shape)
        rows += [Content.assemble(name, old), Content.assemble(" " * shape.name, new)]
    return rows


def _side(
    mark: str,
    side: tuple[int, int, int],
    other: tuple[int, int, int] | None,
    accent: str,
    style: str,
    shape: _Shape,
) -> Content:
    parts: list[Part] = [(mark, WARN if other else DIM)]
    parts.append((" " * (shape.numbers - len(_numbers(side))), ""))
    for place, value in enumerate(side):
        moved = other is not None and other[place] != value
        parts.append((f"{value:,}", style if moved or other is None else DIM))
        if place < 2:
            parts.append((" · ", DIM))
    numbers = line(*parts)
    if not shape.bar:
        return numbers
    return Content.assemble(numbers, "  ", _bar(side, accent or DIM, shape))


def _bar(side: tuple[int, int, int], style: str, shape: _Shape) -> Content:
    floor, target, ceiling = (min(shape.bar, value * shape.bar // shape.scale) for value in side)
    cells: list[Part] = []
    for cell in range(shape.bar):
        if cell == min(target, shape.bar - 1):
            cells.append(("┃", STRONG))
        elif floor <= cell < ceiling:
            cells.append(("━", style))
        else:
            cells.append(("·" if cell < floor else " ", RULE))
    return line(*cells)


def _numbers(side: tuple[int, int, int]) -> str:
    return " · ".join(f"{value:,}" for value in side)


def _hung(head: str, text: str, width: int, style: str = DIM) -> list[Content]:
    """Wrap ``text`` next to ``head``, or below it where there is no room."""
    content = line((head, style))
    indent = content.cell_length
    if width - indent < _WORDS_LEAST:
        pieces = [
            *content.wrap(max(1, width)),
            *(piece for part in block(text).split("\n") for piece in part.wrap(max(1, width))),
        ]
        return list(pieces)
    pieces = [
        piece
        for part in block(text).split("\n", allow_blank=True)
        for piece in part.wrap(width - indent) or [Content("")]
    ]
    return [
        Content.assemble(content if place == 0 else " " * indent, piece)
        for place, piece in enumerate(pieces or [Content("")])
    ]
