"""How wrong estimates were: the first estimate of each session and task run against what it took.

See ``docs/reference/measures.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from msgspec import Struct

from cockpit.store.journal.details.estimates import EstimateLearned, Expected, Range


class EstimateAccuracy(Struct, frozen=True):
    """The errors of estimates, oldest first; an error is a share of what was likely (0.5: off by a half)."""

    waves: tuple[float, ...] = ()
    tokens: tuple[float, ...] = ()
    cost_usd: tuple[float, ...] = ()
    """Only where a price was known before and after."""
    within: int = 0
    """Estimates in whose range of waves the number was."""

    @property
    def count(self) -> int:
        """Number of estimates that can be compared with what was taken."""
        return len(self.waves)

    @property
    def within_share(self) -> float | None:
        """Share of estimates in whose range the number of waves was; four of five are aimed at."""
        return self.within / self.count if self.count else None

    @property
    def waves_error(self) -> float | None:
        """The median error of waves."""
        return median(self.waves) if self.waves else None

    @property
    def tokens_error(self) -> float | None:
        """The median error of tokens."""
        return median(self.tokens) if self.tokens else None

    def body(self) -> dict[str, Any]:
        """Return the JSON object that ``cockpit stats --json`` prints."""
        return {
            "count": self.count,
            "within": self.within_share,
            "waves_error": self.waves_error,
            "tokens_error": self.tokens_error,
            "cost_error": median(self.cost_usd) if self.cost_usd else None,
            "each": list(self.waves),
        }


def compare_estimates(learned: Sequence[EstimateLearned]) -> EstimateAccuracy:
    """Compare estimates with what was taken; of a subject that was learned twice, the last counts."""
    latest = {each.subject: each for each in learned}
    pairs = [
        (each, each.expected)
        for each in latest.values()
        if isinstance(each.expected, Expected) and each.expected.waves.likely > 0
    ]
    return EstimateAccuracy(
        waves=tuple(_error(each.waves, expected.waves) for each, expected in pairs),
        tokens=tuple(
            _error(each.tokens, expected.tokens)
            for each, expected in pairs
            if expected.tokens.likely > 0
        ),
        cost_usd=tuple(
            _error(each.cost_usd, expected.cost_usd)
            for each, expected in pairs
            if each.cost_usd is not None
            and expected.cost_usd is not None
            and expected.cost_usd.likely > 0
        ),
        within=sum(
            expected.waves.low <= each.waves <= expected.waves.high for each, expected in pairs
        ),
    )


def _error(actual: float, expected: Range) -> float:
    return abs(actual - expected.likely) / expected.likely
