"""The rows of a file's diff: which lines stand next to each other, how many lines of the screen each takes,
and the colours of its language, which are found for a stretch of lines when it comes into view.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import accumulate, zip_longest
from typing import Literal, NamedTuple

from rich.cells import cell_len
from textual import highlight
from textual.content import Content

from widgets.text.clean import clean
from widgets.text.compare_lines import Change, compare_lines, count_changed, group_changes
from widgets.text.language import PLAIN, name_language

AROUND = 3
"""Lines of context around a change."""
_STRETCH = 48
"""Lines that are coloured at once: about a page."""
_LEAD = 8
"""Lines above a stretch that are coloured with it: it may begin inside a string."""
_MOST_COLOURED = 20_000
"""Characters of a stretch that are coloured; minified code stays plain."""
_MOST_COMPARED = 400
"""Characters of two lines of which the different ones are marked."""
_MARK = "bold"

Sign = Literal[" ", "+", "-", "⋮"]


class Row(NamedTuple):
    """One row: the lines before and after, from 0, or -1; for a gap how many lines it leaves out."""

    sign: Sign
    old: int
    new: int
    pair: int = -1
    """For one side of a changed line the line on the other side."""


class DiffText:
    """The two texts of a diff, cleaned, and their differences."""

    def __init__(self, path: str, before: str | None, after: str | None) -> None:
        self.path = clean(path, newlines=False)
        self.sides = (_lines(before), _lines(after))
        self.is_new, self.is_removed = before is None, after is None
        self.changes: list[Change] = compare_lines(*self.sides)
        self.added, self.removed = count_changed(self.changes)
        self._coloured: dict[tuple[int, type], dict[int, Content]] = {}
        """Lines in their colours, by side and theme."""
        self._language: tuple[str, ...] = ()

    @property
    def has_one_column(self) -> bool:
        """Whether there is only one side: the file is new, removed, or was empty."""
        return not (self.sides[0] and self.sides[1])

    def rows(self, *, split: bool, around: int | None = AROUND) -> list[Row]:
        """Return the rows, unified or side by side; ``around`` None keeps every line."""
        groups = [self.changes] if around is None else group_changes(self.changes, around)
        rows: list[Row] = []
        end = 0
        for group in groups:
            if group and group[0].low > end:
                rows.append(Row("⋮", group[0].low - end, 0))
            for change in group:
                rows += _split(change) if split else _unified(change)
                end = change.high
        if groups and end < len(self.sides[0]):
            rows.append(Row("⋮", len(self.sides[0]) - end, 0))
        return rows

    def line(self, side: int, place: int, theme: type[highlight.HighlightTheme]) -> Content:
        """Return a line in the colours of its language."""
        coloured = self._coloured.setdefault((side, theme), {})
        if place not in coloured:
            # A whole stretch, in the direction of reading: a page needs one, and a step up needs none.
            first = max(0, place + 1 - _STRETCH) if place + 1 in coloured else place
            for step, line in enumerate(self._colour(side, first, theme)):
                coloured.setdefault(first + step, line)
        return coloured[place]

    def marked(self, side: int, place: int, other: int, line: Content) -> Content:
        """Mark the characters of a changed line that are not on the other side."""
        text, opposite = self.sides[side][place], self.sides[1 - side][other]
        if max(len(text), len(opposite)) > _MOST_COMPARED:
            return line
        matcher = SequenceMatcher(None, text, opposite, autojunk=False)
        if matcher.quick_ratio() < 0.5:
            return line
        for tag, low, high, _, _ in matcher.get_opcodes():
            if tag != "equal" and low < high:
                line = line.stylize(_MARK, low, high)
        return line

    def _colour(
        self, side: int, first: int, theme: type[highlight.HighlightTheme]
    ) -> list[Content]:
        lines = self.sides[side]
        lead = max(0, first - _LEAD)
        texts = lines[lead : first + _STRETCH]
        code = "\n".join(texts)
        language = self._languages[side]
        if language != PLAIN and len(code) <= _MOST_COLOURED:
            drawn = highlight.highlight(code, language=language, theme=theme)
            coloured = drawn.split("\n", allow_blank=True)
            if [each.plain for each in coloured[: len(texts)]] == texts:
                return coloured[first - lead : len(texts)]
        return [Content(text) for text in lines[first : first + _STRETCH]]

    @property
    def _languages(self) -> tuple[str, ...]:
        if not self._language:
            code = ("\n".join(lines[:_STRETCH]) for lines in self.sides)
            self._language = tuple(name_language(text, self.path) for text in code)
        return self._language


class Layout:
    """The rows of a diff at one width: where each begins, in lines of the screen."""

    def __init__(self, text: DiffText, rows: Sequence[Row], width: int, *, split: bool) -> None:
        self.rows, self.split = rows, split and not text.has_one_column
        self.digits = len(str(max(map(len, text.sides), default=0)))
        columns = 1 if self.split or text.has_one_column else 2
        self.half = width // 2 if self.split else width
        self.gutter = columns * (self.digits + 1) + 3
        self.room = max(4, self.half - self.gutter)
        heights = [_heights(lines, self.room) for lines in text.sides]
        self.tops = [0, *accumulate(_row_height(row, heights) for row in rows)]

    @property
    def height(self) -> int:
        """All lines of the screen."""
        return self.tops[-1]

    def find(self, y: int) -> tuple[int, int]:
        """Return the row on line ``y``, and which of its lines that is."""
        place = bisect_right(self.tops, y) - 1
        return place, y - self.tops[place]


def _lines(text: str | None) -> list[str]:
    return [] if text is None else clean(text).splitlines()


def _unified(change: Change) -> Iterator[Row]:
    if change.same:
        for step in range(change.high - change.low):
            yield Row(" ", change.low + step, change.first + step)
        return
    paired = change.high - change.low == change.last - change.first
    for step, old in enumerate(range(change.low, change.high)):
        yield Row("-", old, -1, change.first + step if paired else -1)
    for step, new in enumerate(range(change.first, change.last)):
        yield Row("+", -1, new, change.low + step if paired else -1)


def _split(change: Change) -> Iterator[Row]:
    if change.same:
        yield from _unified(change)
        return
    olds, news = range(change.low, change.high), range(change.first, change.last)
    paired = len(olds) == len(news)
    for old, new in zip_longest(olds, news, fillvalue=-1):
        yield Row("-", old, new, 0 if paired else -1)


def _height(line: str, room: int) -> int:
    if len(line) * 2 <= room or (line.isascii() and len(line) <= room):
        return 1
    if line.isascii():
        return -(-len(line) // room)
    return len(Content(line).fold(room)) if cell_len(line) > room else 1


def _heights(lines: Sequence[str], room: int) -> list[int]:
    if max(map(len, lines), default=0) * 2 <= room:  # no character is wider than two cells
        return [1] * len(lines)
    if all(map(str.isascii, lines)):
        return [-(-len(line) // room) or 1 for line in lines]
    return [_height(line, room) for line in lines]


def _row_height(row: Row, heights: Sequence[Sequence[int]]) -> int:
    if row.sign == "⋮":
        return 1
    return max(
        heights[0][row.old] if row.old >= 0 else 1, heights[1][row.new] if row.new >= 0 else 1
    )
