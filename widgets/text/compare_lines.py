"""The differences between two texts by lines, in time that hardly grows faster than the texts.

``difflib`` alone takes minutes for some pairs of 10,000 lines. Lines that are unique on both sides split the
texts first (as git's patience diff does), so that it only gets the short stretches between them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

_MOST_PAIRS = 40_000
"""Pairs of lines of a stretch that difflib compares; a longer one without a unique line is replaced whole."""
_DEEPEST = 40


class Change(NamedTuple):
    """Lines ``low`` to ``high`` before (from 0, ``high`` excluded) become ``first`` to ``last`` after."""

    same: bool
    low: int
    high: int
    first: int
    last: int


def compare_lines(before: Sequence[str], after: Sequence[str]) -> list[Change]:
    """Return the stretches of two texts in order, those that are the same and those that differ."""
    changes: list[Change] = []
    for change in _compare(before, after, 0, len(before), 0, len(after), 0):
        last = changes[-1] if changes else None
        if last is not None and last.same == change.same:
            changes[-1] = last._replace(high=change.high, last=change.last)
        else:
            changes.append(change)
    return changes


def _compare(
    before: Sequence[str],
    after: Sequence[str],
    low: int,
    high: int,
    first: int,
    last: int,
    depth: int,
) -> Iterator[Change]:
    start, begin = low, first
    while low < high and first < last and before[low] == after[first]:
        low, first = low + 1, first + 1
    if low > start:
        yield Change(True, start, low, begin, first)
    end, stop = high, last
    while low < high and first < last and before[high - 1] == after[last - 1]:
        high, last = high - 1, last - 1
    if low == high or first == last:
        if low < high or first < last:
            yield Change(False, low, high, first, last)
    else:
        yield from _between(before, after, low, high, first, last, depth)
    if end > high:
        yield Change(True, high, end, last, stop)


def _between(
    before: Sequence[str],
    after: Sequence[str],
    low: int,
    high: int,
    first: int,
    last: int,
    depth: int,
) -> Iterator[Change]:
    if set(before[low:high]).isdisjoint(after[first:last]):
        yield Change(False, low, high, first, last)
        return
    if (high - low) * (last - first) <= _MOST_PAIRS:
        matcher = SequenceMatcher(None, before[low:high], after[first:last], autojunk=False)
        for tag, a, b, c, d in matcher.get_opcodes():
            yield Change(tag == "equal", low + a, low + b, first + c, first + d)
        return
    anchors = _find_anchors(before, after, low, high, first, last) if depth < _DEEPEST else []
    if not anchors:
        yield Change(False, low, high, first, last)
        return
    start, begin = low, first
    for old, new in [*anchors, (high, last)]:
        if old == low and new == first:  # the run of same lines goes on
            low, first = old + 1, new + 1
            continue
        if start < low:
            yield Change(True, start, low, begin, first)
        yield from _compare(before, after, low, old, first, new, depth + 1)
        start, begin = old, new
        low, first = old + 1, new + 1
    if start < high:
        yield Change(True, start, high, begin, last)


def _find_anchors(
    before: Sequence[str], after: Sequence[str], low: int, high: int, first: int, last: int
) -> list[tuple[int, int]]:
    """Return pairs of lines that are unique on both sides, the most that rise on both."""
    olds, news = Counter(before[low:high]), Counter(after[first:last])
    places = {after[at]: at for at in range(first, last) if news[after[at]] == 1}
    pairs = [
        (at, places[before[at]])
        for at in range(low, high)
        if olds[before[at]] == 1 and before[at] in places
    ]
    tails: list[int] = []
    ends: list[int] = []
    previous: list[int] = []
    for index, (_, new) in enumerate(pairs):
        length = bisect_left(tails, new)
        previous.append(ends[length - 1] if length else -1)
        tails[length : length + 1] = [new]
        ends[length : length + 1] = [index]
    rising: list[tuple[int, int]] = []
    at = ends[-1] if ends else -1
    while at >= 0:
        rising.append(pairs[at])
        at = previous[at]
    return rising[::-1]


def count_changed(changes: Sequence[Change]) -> tuple[int, int]:
    """Return how many lines were added, and how many removed."""
    different = [change for change in changes if not change.same]
    return (
        sum(change.last - change.first for change in different),
        sum(change.high - change.low for change in different),
    )


def group_changes(changes: Sequence[Change], around: int) -> list[list[Change]]:
    """Return the differences with at most ``around`` same lines at each side, in groups that those join."""
    groups: list[list[Change]] = []
    for place, change in enumerate(changes):
        size = change.high - change.low
        if not change.same:
            groups = groups or [[]]
            groups[-1].append(change)
            continue
        head = around if place else 0
        tail = around if place < len(changes) - 1 else 0
        if size <= head + tail:
            groups = groups or [[]]
            groups[-1].append(change)
            continue
        if head:
            groups[-1].append(change._replace(high=change.low + head, last=change.first + head))
        if tail:
            groups.append([change._replace(low=change.high - tail, first=change.last - tail)])
    return groups


def unify_lines(before: Sequence[str], after: Sequence[str], around: int = 3) -> Iterator[str]:
    """Yield the lines of a unified diff, as :func:`difflib.unified_diff` does, without names of files.

    ``around`` is the context around each change, in lines: at least one.
    """
    for group in group_changes(compare_lines(before, after), around):
        low, high = group[0].low, group[-1].high
        yield f"@@ -{_range(low, high)} +{_range(group[0].first, group[-1].last)} @@"
        for change in group:
            if change.same:
                yield from (f" {text}" for text in before[change.low : change.high])
                continue
            yield from (f"-{text}" for text in before[change.low : change.high])
            yield from (f"+{text}" for text in after[change.first : change.last])


def _range(low: int, high: int) -> str:
    """Return the place of lines in a unified diff."""
    size = high - low
    return f"{low + 1}" if size == 1 else f"{low + bool(size)},{size}"
