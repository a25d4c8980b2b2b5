"""When keys of a far terminal were pressed, in the time of the screen that their user saw.

A key counts for what had been on its user's terminal for half a second: of what was drawn later, the first
piece gives the moment. Keys pressed shortly one after the other stay so, however far apart the line brings
them. Specified in ``docs/reference/web.md``.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from collections.abc import Callable

from cockpit.core.terminal.far_terminal import WordFinder

LATEST_S = 60.0
"""Keys that belong to a screen of so many seconds ago are dropped."""
_MOST_PIECES = 4_096
_GAP_COUNTS_S = 2.0
"""Seconds between two keys up to which the line's delay is not believed."""
_numbers = itertools.count(1)  # of all screens of this process: one may follow another


class FarKeyTimes:
    """Numbers what is drawn, and reads what the server says before keys. ``monotonic`` gives seconds.

    Numbers are given in the thread that draws, and read in that of the keys.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._now = monotonic
        self._lock = threading.Lock()
        self._drawn: deque[tuple[int, float]] = deque()
        self._forgotten = 0
        """The highest number whose moment is not known any more, although it was not seen."""
        self._words = WordFinder()
        self._last = monotonic()

    def release(self) -> list[tuple[str, float]]:
        """Return, as :meth:`take` does, what was kept; called when nothing has come for a while."""
        return [(self._words.release(), self._last)]

    def number(self) -> int:
        """Return the number of a piece that is drawn now."""
        with self._lock:
            number = next(_numbers)
            self._drawn.append((number, self._now()))
            if len(self._drawn) > _MOST_PIECES:
                self._forgotten = self._drawn.popleft()[0]
            return number

    def take(self, typed: str) -> list[tuple[str, float]]:
        """Return what was typed, in parts: keys, and the moment they count for.

        The moment is minus infinity for keys that count for nothing known.
        """
        parts = []
        for keys, words in self._words.take(typed):
            if words is not None:
                self._last = self._find_moment(words[0], words[1] / 1_000)
            parts.append((keys, self._last))
        return parts

    def _find_moment(self, seen: int, gap_s: float) -> float:
        with self._lock:
            while self._drawn and self._drawn[0][0] <= seen:
                self._drawn.popleft()
            moment = self._drawn[0][1] if self._drawn else self._now()
            if seen < self._forgotten:
                moment = float("-inf")
        return min(moment, self._last + gap_s) if gap_s < _GAP_COUNTS_S else moment
