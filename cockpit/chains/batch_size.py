"""How many tasks a worker runs at once: two at first, more as batches succeed.

See ``docs/reference/chains.md``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal

from msgspec import Struct

from cockpit.core.errors import CockpitError

FIRST: Final = 2
"""The first and smallest size of adaptive batches."""
MOST: Final = 4
"""The largest size of adaptive batches."""
MOST_FIXED: Final = 16
"""The largest ``-n K``."""
ADAPTIVE: Final = "auto"

Outcome = Literal["completed", "blocked", "interrupted", "failed"]
"""The result of a batch, from best to worst: all tasks done, one blocked, one left in progress, one broke
off for a reason outside the task."""

_CHANGES: Final[dict[Outcome, int]] = {
    "completed": 1,
    "blocked": 0,
    "interrupted": -1,
    "failed": -1,
}
_OF_TASK: Final[dict[str, Outcome]] = {
    "done": "completed",
    "blocked": "blocked",
    "interrupted": "interrupted",
    "failed": "failed",
}


class BatchInvalid(CockpitError):
    """The text is not a size of a batch."""

    code = "usage"


class BatchSize(Struct, frozen=True):
    """How many tasks the next batch may have."""

    size: int = FIRST
    adaptive: bool = True
    """Whether the size follows the results of batches."""

    def after(self, outcome: Outcome) -> BatchSize:
        """Return the size of the batch after one with this ``outcome``."""
        if not self.adaptive:
            return self
        return BatchSize(max(FIRST, min(MOST, self.size + _CHANGES[outcome])))


def read_batch_size(text: str) -> BatchSize:
    """Read the value of ``-n``: ``auto`` or a number from 1.

    Raises :class:`BatchInvalid`.
    """
    if text == ADAPTIVE:
        return BatchSize()
    if text.isascii() and text.isdigit() and len(text) <= 3 and 1 <= int(text) <= MOST_FIXED:
        return BatchSize(int(text), adaptive=False)
    raise BatchInvalid(
        f"{text[:40]!r} is not a batch size; use a number from 1 to {MOST_FIXED}, or '{ADAPTIVE}'."
    )


def batch_outcome(statuses: Iterable[str]) -> Outcome:
    """Return the worst of the tasks' statuses (``done``, ``blocked``, ``interrupted``, ``failed``)."""
    severity = tuple(_CHANGES).index
    return max((_OF_TASK[status] for status in statuses), key=severity, default="completed")
