"""How much of another machine's output the user's terminal has drawn, and since when.

After what is written the terminal is asked for its state (``CSI 5 n``): it answers once it has worked through
everything before. A terminal that answers nothing counts as having drawn what it took.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from cockpit.core.terminal.far_terminal import SETTLE_S

QUESTION = b"\x1b[5n"
ANSWER = b"\x1b[0n"
ANSWERS_WITHIN_S = 3.0
"""Seconds after which a terminal counts as one that does not answer."""


class DrawnOutput:
    """Counts bytes of one line. ``monotonic`` gives seconds."""

    def __init__(
        self, monotonic: Callable[[], float] = time.monotonic, *, answers: bool | None = None
    ) -> None:
        self._now = monotonic
        self.answers = answers
        """Whether the terminal answers; None while that is not known."""
        self.written = 0
        self.seen = 0
        """Bytes that are on the terminal."""
        self._question: tuple[int, float] | None = None
        self._steps: deque[tuple[int, float]] = deque()
        self._settled = 0

    @property
    def is_asking(self) -> bool:
        """Whether an answer is awaited."""
        return self._question is not None

    def write(self, size: int) -> bytes:
        """Note that the terminal took ``size`` bytes; return the question to write now, or nothing."""
        self.written += size
        if self.answers is False:
            self._see(self.written)
            return b""
        return self.ask()

    def ask(self) -> bytes:
        """Return the question to write, if one is due."""
        if self._question is not None or self.seen == self.written or self.answers is False:
            return b""
        self._question = (self.written, self._now())
        return QUESTION

    def answer(self) -> bytes:
        """Note an answer; return the next question, if one is due."""
        self.answers = True
        if self._question is not None:
            (size, _), self._question = self._question, None
            self._see(size)
        return self.ask()

    def give_up(self) -> None:
        """Take a terminal that has not answered in time for one that never does."""
        late = self._question is not None and self._now() - self._question[1] >= ANSWERS_WITHIN_S
        if self.answers is None and late:
            self.answers, self._question = False, None
            self._see(self.written)

    def settled(self) -> int:
        """Return how many bytes have been on the terminal for half a second."""
        while self._steps and self._now() - self._steps[0][1] >= SETTLE_S:
            self._settled = self._steps.popleft()[0]
        return self._settled

    def _see(self, size: int) -> None:
        if size > self.seen:
            self.seen = size
            self._steps.append((size, self._now()))
