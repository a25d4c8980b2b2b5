"""Garbage collection in pauses that nobody sees, for a program that draws.

A collection looks through all objects that outlived earlier ones: 100 ms with the turns and widgets of a
session of 10,000 messages, during which no key is read. Here survivors are looked at once, and then only
while the program rests.

See ``bench/README.md``, the screen.
"""

from __future__ import annotations

import gc

YOUNG = 2_000
"""New objects after which the young ones are looked through."""
_ROUNDS = 5
_NEVER = 1_000_000
REST_S = 30.0
"""Seconds between two calls of :meth:`ShortCollections.collect_at_rest`."""


class ShortCollections:
    """Keeps survivors out of further collections until the program rests."""

    def __init__(self) -> None:
        self._thresholds = gc.get_threshold()
        self._is_busy = self._has_kept = False

    def begin(self) -> None:
        """Turn the collector on; what is there now is looked at no more until the program rests."""
        gc.freeze()
        gc.set_threshold(YOUNG, _ROUNDS, _NEVER)
        gc.callbacks.append(self._note)
        gc.enable()

    def end(self) -> None:
        """Leave the collector as it was found; does nothing where it did not begin."""
        if self._note in gc.callbacks:
            gc.callbacks.remove(self._note)
            gc.set_threshold(*self._thresholds)

    def _note(self, phase: str, info: dict[str, int]) -> None:
        if phase == "stop" and info["generation"] > 0:
            gc.freeze()
            self._is_busy = self._has_kept = True

    def collect_at_rest(self) -> None:
        """Look through everything, once, if hardly an object was made since the last call."""
        is_busy, self._is_busy = self._is_busy, False
        if self._has_kept and not is_busy:
            gc.unfreeze()
            gc.collect()
            gc.freeze()
            self._is_busy = self._has_kept = False
