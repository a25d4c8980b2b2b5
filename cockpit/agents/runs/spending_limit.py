"""What a run of an external agent may spend: tokens of the run, and US dollars of its session.

Few agents report a price before their end. Until then the tokens count at the list price of the agent's
model. A limit of cost without a price ends the run: it is never ignored. See ``docs/reference/agents.md``.
"""

from __future__ import annotations

import asyncio

from cockpit.agents.streams.stream_events import (
    AgentStarted,
    Finish,
    StreamEvent,
    TokenUsage,
    UsageUpdate,
)
from cockpit.agents.streams.stream_formats import Stream
from cockpit.core.text import pluralize
from cockpit.decide.known_prices import list_price

_REMEDY = (
    "Leave out [limits] max_cost and --max-cost; [runner] timeout_s and the max_tokens of a role limit an"
    " agent too. Or"
    " choose a runner that reports its cost."
)


def refuse_unpriced(runner: str, max_cost: float) -> str:
    """Return why a limit of cost cannot be kept with a runner that reports none, and what to do."""
    return (
        f"Runner {runner} reports no cost, so the limit of ${max_cost:.2f} cannot be"
        f" kept. {_REMEDY}"
    )


def refuse_uncounted(runner: str, max_tokens: int) -> str:
    """Return why a limit of tokens cannot be kept with a runner that reports none, and what to do."""
    return (
        f"Runner {runner} reports no tokens, so the limit of {max_tokens:,} tokens for a session ([limits]"
        " max_tokens) cannot be kept. Leave it out; [runner] timeout_s limits the agent. Or choose a runner"
        " that reports its tokens."
    )


class SpendingLimit:
    """The limits of one run; ``reached`` is set when the agent must be ended."""

    def __init__(
        self,
        runner: str,
        *,
        max_tokens: int | None,
        max_cost: float | None,
        spent: float,
        spent_tokens: int = 0,
        must_count: bool = False,
    ) -> None:
        """``spent`` is what earlier runs of the session cost, in US dollars, ``spent_tokens`` their tokens
        without those of a cache. ``must_count``: the user set the limit of tokens, and a runner that
        reports none cannot keep it; a role's own limit is then one of time alone.
        """
        self.reached = asyncio.Event()
        self.reason = ""
        """Which limit was reached, as a sentence; empty for none."""
        self.unpriced = False
        """Whether the limit of cost could not be kept."""
        self.estimate: float | None = None
        """US dollars of this run so far by the list price; None where it is not known."""
        self._runner, self._model = runner, ""
        self._max_tokens, self._max_cost, self._spent = max_tokens, max_cost, spent
        self._spent_tokens, self._must_count = spent_tokens, must_count
        self._check_dollars(0.0)
        self._check_tokens(0)

    async def check(self, event: StreamEvent) -> None:
        """Check what one event says."""
        match event:
            case AgentStarted():
                self._model = event.model
            case UsageUpdate(usage):
                self._check_tokens(usage.fresh)
                if self._max_cost is not None:
                    await self._check_usage(usage, self._max_cost)

    def check_format(self, stream: Stream) -> None:
        """End the run as soon as its output turns out to be text, which holds no price and no tokens."""
        if stream.reports_usage:
            return
        if self._max_cost is not None:
            self._end(refuse_unpriced(self._runner, self._max_cost), unpriced=True)
        if self._must_count and self._max_tokens:
            self._end(refuse_uncounted(self._runner, self._max_tokens), unpriced=True)

    def check_finish(self, stream: Stream, finish: Finish | None) -> None:
        """Check the reported end: what was spent must have a price there."""
        self.check_format(stream)
        if self._max_cost is None or finish is None or self.estimate is not None:
            return
        if finish.usage.tokens and finish.usage.cost_usd is None:
            self._end(refuse_unpriced(self._runner, self._max_cost), unpriced=True)

    async def _check_usage(self, usage: TokenUsage, limit: float) -> None:
        cost = usage.cost_usd
        if cost is None and usage.tokens:
            # In a thread: the price list takes a second or two to load.
            cost = self.estimate = await asyncio.to_thread(
                list_price,
                self._model,
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                cached_tokens=min(usage.cached_tokens, usage.input_tokens),
            )
            if cost is None:
                name = self._model or "its model"
                self._end(
                    f"The limit of ${limit:.2f} cannot be kept: no price is known for {name}, on which"
                    f" runner {self._runner} spent {pluralize(usage.tokens, 'token')}. {_REMEDY}",
                    unpriced=True,
                )
        self._check_dollars(cost or 0.0)

    def _check_tokens(self, fresh: int) -> None:
        if self._max_tokens and self._spent_tokens + fresh > self._max_tokens:
            self._end(f"The limit of {self._max_tokens:,} tokens is reached.")

    def _check_dollars(self, cost: float) -> None:
        total = self._spent + cost
        if self._max_cost is not None and total >= self._max_cost:
            self._end(f"The limit of ${self._max_cost:.2f} is reached (${total:.2f} spent).")

    def _end(self, reason: str, *, unpriced: bool = False) -> None:
        if not self.reason:
            self.reason, self.unpriced = reason, unpriced
        self.reached.set()
