"""The frames of the four panes and of the prompt, empty, in one widget."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from widgets.text.style_names import BADGE, DIM, RULE, Part

TITLES = ("Conversation", "Bands", "Proposals", "Work")
"""The tabs of a narrow screen."""

_BANDS_ROWS = 10
_BANDS_MOST = 2
"""The bands take at most this part of the column: a half."""
_PROPOSALS_ROWS = 4
_WORK_LEAST = 4
_PROMPT_ROWS = 3
_LEFT, _RIGHT = 13, 12
"""The shares of the columns; one cell is between them."""
_WIDE_LEFT, _WIDE_RIGHT = 2, 3
"""The same of a screen with three columns, of which two are in the right part."""
_FOCUSED = "$tone-accent"


class EmptyPanes(Widget):
    """Draw what the screen has below its header while nothing is in it, down to the line of keys.

    Posts nothing. The widgets and the stylesheet that draw the same later are many times its cost.
    """

    DEFAULT_CSS = """
    EmptyPanes { width: 1fr; height: 1fr; background: $background; color: $foreground;
        text-wrap: nowrap; text-overflow: clip; }
    """

    narrow: reactive[bool] = reactive(False)
    """True for one pane and tabs."""
    wide: reactive[bool] = reactive(False)
    """True for three columns."""

    def render(self) -> Content:
        width, height = self.size
        rows = height - 1
        if self.narrow:
            lines = [_tabs(), *_left(width, rows - 1)]
        else:
            share, rest = (_WIDE_LEFT, _WIDE_RIGHT) if self.wide else (_LEFT, _RIGHT)
            left_width = share * (width - 1) // (share + rest)
            left = _left(left_width, rows)
            right = (_two_columns if self.wide else _right)(width - 1 - left_width, rows)
            lines = [[*a, " ", *b] for a, b in zip(left, right, strict=True)]
        keys: list[Part] = [(" " * width, "on $panel")]
        return Content("\n").join(Content.assemble(*parts) for parts in [*lines, keys])


def _left(width: int, rows: int) -> list[list[Part]]:
    prompt = min(_PROMPT_ROWS, rows)
    return [
        *_box("Conversation", width, rows - prompt),
        *_box("", width, prompt, _FOCUSED),
    ]


def _two_columns(width: int, rows: int) -> list[list[Part]]:
    above, bands = rows - _PROPOSALS_ROWS, (width - 1) // 2
    pairs = zip(
        _box("Bands", bands, above), _box("Chains & work", width - 1 - bands, above), strict=True
    )
    lines: list[list[Part]] = [[*a, " ", *b] for a, b in pairs]
    return [*lines, *_box("Proposals", width, _PROPOSALS_ROWS)][:rows]


def _right(width: int, rows: int) -> list[list[Part]]:
    bands = min(_BANDS_ROWS, rows // _BANDS_MOST)
    work = max(rows - bands - _PROPOSALS_ROWS, _WORK_LEAST)
    boxes = (("Bands", bands), ("Proposals", _PROPOSALS_ROWS), ("Chains & work", work))
    lines = [line for title, height in boxes for line in _box(title, width, height)]
    return lines[:rows]


def _box(title: str, width: int, rows: int, style: str = RULE) -> list[list[Part]]:
    """Return the lines of a border of ``rows`` lines and ``width`` cells around nothing."""
    inner = max(width - 2, 0)
    if rows < 2:
        return [[(" " * width, "")]] * max(rows, 0)
    room = inner - len(title) - 3
    top: list[Part] = (
        [("╭─", style), (f" {title} ", DIM), ("─" * room + "╮", style)]
        if title and room >= 0
        else [("╭" + "─" * inner + "╮", style)]
    )
    side: list[Part] = [("│", style), " " * inner, ("│", style)]
    return [top, *[side] * (rows - 2), [("╰" + "─" * inner + "╯", style)]]


def _tabs() -> Sequence[Part]:
    parts: list[Part] = []
    for place, title in enumerate(TITLES):
        parts.append((f"  {title}  ", DIM if place else BADGE))
    return parts
