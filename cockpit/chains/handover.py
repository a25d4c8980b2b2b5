"""How full a chain session is: when it should make room for a new one, and why.

Two things are measured: the tokens that its roles spent against the session's limit, and the largest
share of utility that a packet of theirs had no room for. Source: seed 004, solution 7; design of work,
"Chains".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MOST_DROPPED: Final = 0.5
"""Beyond this share of what was known, too little of it is seen to decide well."""

TOKENS, DROPPED = "tokens", "dropped"


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """What one session may use up; None is no limit.

    ``tokens`` and ``dropped_share`` (0 to 1) are its context pressure, ``batches`` how many it may
    begin. ``cost_usd`` and ``wall_s`` (seconds) are what is left of the chain's.
    """

    tokens: int | None = None
    dropped_share: float | None = MOST_DROPPED
    batches: int | None = None
    cost_usd: float | None = None
    wall_s: float | None = None


@dataclass(frozen=True, slots=True)
class WorkerUsage:
    """A session's measures against its quota. ``cost_usd`` and ``wall_s`` count from its beginning."""

    quota: WorkerLimits
    tokens: int = 0
    dropped_share: float = 0.0
    cost_usd: float = 0.0
    wall_s: float = 0.0

    @property
    def passed(self) -> str:
        """Which of the two measures of context passed its limit: ``tokens``, ``dropped``, or none."""
        if self.quota.tokens is not None and self.tokens >= self.quota.tokens:
            return TOKENS
        if self.quota.dropped_share is not None and self.dropped_share > self.quota.dropped_share:
            return DROPPED
        return ""

    @property
    def reason(self) -> str:
        """Why the session has to end: ``limit`` (of cost or time), ``pressure``, or nothing yet."""
        limits = ((self.quota.cost_usd, self.cost_usd), (self.quota.wall_s, self.wall_s))
        if any(most is not None and used >= most for most, used in limits):
            return "limit"
        return "pressure" if self.passed else ""

    @property
    def at_once(self) -> str:
        """Why not even another step of a task is begun, as :attr:`reason`. What a packet has no room for
        a new session has no room for either: that waits for the batch's end."""
        return "" if self.reason == "pressure" and self.passed == DROPPED else self.reason

    def words(self) -> str:
        """``41,200 of 50,000 tokens (82 %), 12 % of what was known left out``."""
        told = f"{self.tokens:,} tokens"
        if self.quota.tokens is not None:
            share = 100 * self.tokens // max(1, self.quota.tokens)
            told = f"{self.tokens:,} of {self.quota.tokens:,} tokens ({share} %)"
        return f"{told}, {round(100 * self.dropped_share)} % of what was known left out"
