"""Which lines of a proposal have been on the screen, and which have not.

A proposal is drawn in parts, one below the other. A part is known by its key, its width and its number of
lines. Lines count once they stood in the viewport. A part that was read whole stays read when it is wrapped
for another width; one that was read in part begins anew, for nobody can tell which of its lines are which.
Specified in ``docs/reference/screen.md``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

LEAST_CELLS = 20
"""Columns that a part needs to be read: in fewer, a line may be cut off."""


class Part(msgspec.Struct, frozen=True):
    """A part as it is laid out now. ``is_ready`` is False while some of it is still to come."""

    key: str
    width: int
    lines: int
    is_ready: bool = True


class _Record:
    def __init__(self, part: Part) -> None:
        self.part = part
        self.seen: list[tuple[int, int]] = []
        """Ranges of lines that were in view, in order and apart; the second number is the line after."""
        self.read_as: set[tuple[int, int]] = set()
        """Width and lines of each layout in which every line was in view."""

    @property
    def count(self) -> int:
        """Lines that were in view."""
        return sum(last - first for first, last in self.seen)

    @property
    def is_read(self) -> bool:
        return self.part.is_ready and self.part.lines <= self.count

    @property
    def first_unseen(self) -> int:
        return self.seen[0][1] if self.seen and self.seen[0][0] == 0 else 0

    def lay_out(self, part: Part) -> None:
        before, was_read = self.part, self.is_read
        self.part = part
        if (part.width, part.lines) == (before.width, before.lines):
            return
        is_rewrapped = was_read and part.width != before.width
        is_known = (part.width, part.lines) in self.read_as
        self.seen = [(0, part.lines)] if part.lines and (is_rewrapped or is_known) else []

    def note(self, first: int, last: int) -> None:
        first, last = max(0, first), min(last, self.part.lines)
        if first >= last or self.part.width < LEAST_CELLS:
            return
        merged: list[tuple[int, int]] = []
        for each in sorted([*self.seen, (first, last)]):
            if merged and each[0] <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(merged[-1][1], each[1]))
            else:
                merged.append(each)
        self.seen = merged
        if self.is_read:
            self.read_as.add((self.part.width, self.part.lines))


class Reading:
    """How far what is ``drawn`` was read: a proposal, or several that are alike.

    Tell it the parts of each layout (:meth:`lay_out`), then the lines of each that are in view
    (:meth:`note`). Lines are counted as they are drawn, wrapped ones too.
    """

    def __init__(self, drawn: str = "") -> None:
        self.drawn = drawn
        self._records: dict[str, _Record] = {}
        self._keys: list[str] = []

    def lay_out(self, parts: Iterable[Part]) -> None:
        """Note the parts that the proposal has now. What was read of a part that comes back counts."""
        self._keys = []
        for part in parts:
            self._keys.append(part.key)
            record = self._records.get(part.key)
            if record is None:
                self._records[part.key] = _Record(part)
            else:
                record.lay_out(part)

    def note(self, key: str, first: int, last: int) -> None:
        """Note that the lines from ``first`` to before ``last`` of a part are in view."""
        self._records[key].note(first, last)

    @property
    def lines(self) -> int:
        """All lines of the proposal."""
        return sum(self._records[key].part.lines for key in self._keys)

    @property
    def shown(self) -> int:
        """Lines that are or were in view."""
        return sum(self._records[key].count for key in self._keys)

    @property
    def is_whole(self) -> bool:
        """True when every line of every part is or was in view."""
        return bool(self._keys) and all(self._records[key].is_read for key in self._keys)

    @property
    def first_unseen(self) -> tuple[str, int] | None:
        """The part and the line from which on to read; None when all was in view."""
        for key in self._keys:
            record = self._records[key]
            if not record.is_read:
                return key, record.first_unseen
        return None


def lines_in_view(
    top: int, height: int, covers: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Return the ranges of the ``height`` lines from ``top`` on that no cover lies over, in order.

    ``covers`` and the answer are ranges (first line, line after the last).
    """
    ranges = [(top, top + height)]
    for low, high in covers:
        ranges = [
            part
            for first, last in ranges
            for part in ((first, min(last, low)), (max(first, high), last))
            if part[0] < part[1]
        ]
    return ranges
