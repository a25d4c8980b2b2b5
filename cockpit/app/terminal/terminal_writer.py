"""The terminal's output: a thread writes, and whoever draws never waits for a terminal that does not read.

Textual's own writer lets the screen wait once thirty writes are queued: a terminal that is gone or stopped
(Ctrl+S, a dead connection) then blocks the program, which hears no signal any more.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable

from cockpit.app.terminal.far_key_times import FarKeyTimes
from cockpit.core.terminal.far_terminal import mark

MOST_BYTES = 1 << 20
"""Frames that wait for the terminal; above it, frames are dropped and the whole screen is drawn later."""
BEHIND_S = 0.3
_CHUNK = 4_096
_FRAME_LEAST = 64
"""What is longer is a frame; shorter are switches of modes, the bell and moves of the cursor."""
_SYNC = ("\x1b[?2026h", "\x1b[?2026l")


class TerminalWriter(threading.Thread):
    """Writes text to the descriptor of a terminal, in order.

    ``on_lost`` is called once when the terminal is gone. ``on_caught_up`` is called when the terminal has
    read everything after frames were dropped. Both are called in the thread of the writer. ``far`` numbers
    the texts for a terminal on another machine.
    """

    def __init__(
        self,
        descriptor: int,
        on_lost: Callable[[], object],
        on_caught_up: Callable[[], object],
        far: FarKeyTimes | None = None,
    ) -> None:
        super().__init__(daemon=True, name="terminal-output")
        self._descriptor = descriptor
        self._on_lost = on_lost
        self._on_caught_up = on_caught_up
        self._far = far
        self._texts: deque[tuple[str, int] | None] = deque()
        self._changed = threading.Condition()
        self._waiting = 0
        self._dropped = False
        self._lost = False
        self._writing_since = float("inf")

    @property
    def is_behind(self) -> bool:
        """True while the terminal has not read a part for :data:`BEHIND_S`: the user sees an older screen."""
        return time.monotonic() - self._writing_since > BEHIND_S

    def write(self, text: str) -> None:
        """Queue ``text``. A frame is dropped while too much waits, anything once the terminal is gone."""
        with self._changed:
            if self._lost:
                return
            if self._waiting > MOST_BYTES and _is_frame(text):
                self._dropped = True
                return
            self._waiting += len(text)
            self._texts.append((text, self._far.number() if self._far is not None else 0))
            self._changed.notify()

    def stop(self, patience_s: float) -> bool:
        """Write what switches modes, leave frames out, and end; return False when the terminal does not read.

        The thread is left behind then: it ends with the program.
        """
        with self._changed:
            kept = [each for each in self._texts if each is not None and not _is_frame(each[0])]
            self._texts.clear()
            self._texts.extend((*kept, None))
            self._dropped = False
            self._changed.notify()
        self.join(patience_s)
        return not self.is_alive()

    def run(self) -> None:
        """Write until :meth:`stop` is called or the terminal is gone."""
        while (queued := self._next()) is not None:
            text, number = queued
            if number:
                text += mark(str(number))
            data = memoryview(text.encode("utf-8", "replace"))
            while data:
                self._writing_since = time.monotonic()
                try:
                    data = data[os.write(self._descriptor, data[:_CHUNK]) :]
                except OSError:
                    self._lose()
                    return
            self._writing_since = float("inf")

    def _next(self) -> tuple[str, int] | None:
        with self._changed:
            while not self._texts:
                if self._dropped:
                    self._dropped = False
                    self._on_caught_up()
                self._changed.wait()
            queued = self._texts.popleft()
            self._waiting -= len(queued[0]) if queued is not None else 0
            return queued

    def _lose(self) -> None:
        with self._changed:
            self._lost = True
            self._texts.clear()
        self._on_lost()


def _is_frame(text: str) -> bool:
    """Whether ``text`` draws a part of the screen, and is drawn again with the whole of it."""
    return (len(text) > _FRAME_LEAST and not text.startswith("\x1b]")) or text in _SYNC
