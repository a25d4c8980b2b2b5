"""Epochs: waves of a session whose packets each begin with all of the packet before.

Providers read a prompt's beginning from their cache at a tenth of the price, as long as it is the same,
byte for byte. So within an epoch every packet appends to the one before. The record that a packet keeps of
its epoch, and the prices that decide when one ends. Specified in ``docs/reference/kernel.md``, epochs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

APPENDED = ""
"""The reason of a packet that begins no epoch."""

REASONS = {
    "first": "it is the first wave",
    "profile": "the profile changed",
    "head": "the system text, the tools or the task changed",
    "cold": "the provider's cache is gone: the session was idle for longer than it lives",
    "budget": "there was no room to append",
}
"""Why a wave began an epoch, as a word and in words."""


MAX_PRICE = 10_000


class CachePrices(Struct, frozen=True):
    """What prompts cost with a provider's cache: whole numbers of a profile.

    Prices are thousandths of a token's price without a cache.
    """

    read: int = 100
    """Of a token that is read from the cache."""
    write: int = 1_250
    """Of a token that is sent and kept in the cache."""
    lifetime_s: int = 300
    """Seconds that the cache lives after it was last used."""

    def problem(self) -> str:
        """Return what is wrong with the numbers, or an empty string."""
        for name, least in (("read", 1), ("write", 0)):
            if not least <= getattr(self, name) <= MAX_PRICE:
                return f"cache {name} {getattr(self, name)} is outside {least} to {MAX_PRICE:,}"
        if self.lifetime_s < 0:
            return f"cache lifetime_s {self.lifetime_s} is negative"
        return ""

    def body(self) -> dict[str, int]:
        """Return it as a JSON value: what differs from the defaults."""
        return {
            name: value
            for name in self.__struct_fields__
            if (value := getattr(self, name)) != getattr(_USUAL_PRICES, name)
        }

    def document(self) -> dict[str, int]:
        """Return all of it as a JSON value."""
        return asdict(self)

    def units(self, tokens: int, cached: int) -> int:
        """Return what a prompt costs, in tokens at the price without a cache, rounded up."""
        read = min(cached, tokens)
        return -(-(self.read * read + self.write * (tokens - read)) // 1_000)


_USUAL_PRICES = CachePrices()


DEFAULT_PRICES = CachePrices()


class Change(Struct, frozen=True):
    """A shorter form of a fact that repeats what stands above it, and its tokens.

    Either it replaces ``base`` and comes as the difference, or it ``points`` to lines of the facts in
    ``base``; then ``tokens`` are those that this saves.
    """

    fact_id: str
    base: str
    tokens: int
    points: bool = False

    def body(self) -> list[Any]:
        """Return it as a JSON value."""
        values = [self.fact_id, self.base, self.tokens]
        return [*values, True] if self.points else values


class Epoch(Struct, frozen=True):
    """A packet's place in its epoch."""

    first: int
    """The ordinal of the wave that began the epoch."""
    reason: str
    """Why this wave began it, one of :data:`REASONS`; :data:`APPENDED` if it did not."""
    begun: int
    """Tokens that the first packet of the epoch uses, overheads included; 0 in that packet itself."""
    previous: str
    """The digest of the packet before; empty for the first of a session."""
    head: str
    """The digest of the tools as they are described."""
    cold: bool
    """Whether the provider's cache was gone: the session was idle for longer than it lives."""
    headroom: int = 0
    """Tokens that the packet leaves free for the waves after it, where it begins an epoch."""
    share: int = 0
    """The headroom in percent of the room for facts that are not pinned."""
    paid: int = 0
    """What the prompts of the waves before cost, in thousandths of a token's price."""
    transcript: int = 0
    """Tokens of a transcript of the session with this wave."""
    transcript_before: int = 0
    """The same with the wave before."""
    transcript_paid: int = 0
    """What a growing transcript with the same cache cost in the waves before, in the same unit."""
    cached: int = 0
    """Tokens of the prompt that the provider is expected to have in its cache."""
    changes: tuple[Change, ...] = ()
    """The shorter forms that could stand for whole texts in this wave."""
    prices: CachePrices | None = None
    """What the session's model costs with its provider's cache; None: as the profile says."""

    @property
    def begins(self) -> bool:
        return self.reason != APPENDED

    def body(self) -> dict[str, Any]:
        """Return it as a JSON value; :func:`epoch_from_body` reverses it."""
        body = {
            **{name: getattr(self, name) for name in _PLAIN},
            "changes": [change.body() for change in self.changes],
        }
        return body if self.prices is None else {**body, "prices": self.prices.document()}


_PLAIN = tuple(name for name in Epoch.__struct_fields__ if name not in ("changes", "prices"))
"""Fields whose values are numbers, texts and truths."""


def epoch_from_body(body: Mapping[str, Any]) -> Epoch:
    """Make an epoch from its body. Raises ``TypeError`` or ``KeyError`` for any other value."""
    changes = tuple(Change(*change) for change in body["changes"])
    prices = CachePrices(**body["prices"]) if "prices" in body else None
    return Epoch(**{**body, "changes": changes, "prices": prices})
