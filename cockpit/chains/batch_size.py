"""How many tasks are done at the same time: few at first, more as they succeed.

Source: seed 004, solution 6.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from cockpit.core.errors import CockpitError

FIRST: Final = 2
"""With so many an adaptive session begins; it never has fewer."""
MOST: Final = 4
"""It never has more."""
MOST_FIXED: Final = 16
"""Of ``-n K``."""
ADAPTIVE: Final = "auto"

Outcome = Literal["completed", "blocked", "interrupted", "failed"]
"""How a batch ends: all of its tasks are done; one of them is blocked; one has to be gone on with; one
broke off for a reason of ours. Each is worse than the one before."""

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
    """No size of a batch."""

    code = "usage"


@dataclass(frozen=True, slots=True)
class BatchSize:
    """How many tasks the next batch may have. ``adaptive``: it follows how the last one ended."""

    size: int = FIRST
    adaptive: bool = True

    def after(self, outcome: Outcome) -> BatchSize:
        """The size once a batch came to ``outcome``: one more or one less where it is adaptive."""
        if not self.adaptive:
            return self
        return BatchSize(max(FIRST, min(MOST, self.size + _CHANGES[outcome])))


def batch_size(told: str) -> BatchSize:
    """What ``-n`` says, as a session begins: ``auto`` or a number from 1 on.

    Raises :class:`BatchInvalid`.
    """
    if told == ADAPTIVE:
        return BatchSize()
    if told.isascii() and told.isdigit() and len(told) <= 3 and 1 <= int(told) <= MOST_FIXED:
        return BatchSize(int(told), adaptive=False)
    raise BatchInvalid(
        f"A batch has a number of tasks from 1 to {MOST_FIXED}, or '{ADAPTIVE}', not {told[:40]!r}."
    )


def outcome_of(statuses: Iterable[str]) -> Outcome:
    """How a batch ended whose tasks ended as ``done``, ``blocked``, ``interrupted`` or ``failed``: as
    the worst of them."""
    worst = tuple(_CHANGES).index
    return max((_OF_TASK[status] for status in statuses), key=worst, default="completed")
