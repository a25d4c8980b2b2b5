"""Epochs: waves of a session whose packets each begin with all of the packet before.

Providers read a prompt's beginning from their cache at a tenth of the price, as long as it is the same,
byte for byte. So within an epoch every packet appends to the one before. The record that a packet keeps of
its epoch, and the prices that decide when one ends. Specified in ``docs/reference/kernel.md``, epochs.
"""

from __future__ import annotations

import math
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
    "stale": "carrying what is stale has cost as much as a fresh packet",
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

    def room_to_append(self, room: int, growth: int, quarters: int) -> int:
        """Return how many tokens of ``room`` a fresh packet leaves, where waves add ``growth`` tokens.

        With ``n`` tokens left it lasts ``n / growth`` waves and is then sent anew: more room makes that rarer
        and the packet poorer. The root balances the price of sending it with that of reading what is left
        out; ``quarters`` says how much of that it weighs. At least a quarter of the room is for facts.
        """
        balanced = math.isqrt(quarters * room * growth * self.write // (4 * self.read))
        return min(balanced, room - room // 4)

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
    """A fact that replaces another one above it, and the tokens of the difference between them."""

    fact_id: str
    base: str
    tokens: int


class SpentFacts(Struct, frozen=True):
    """Facts that a packet which begins a later epoch does not show whole, by id, in order of time."""

    ids: tuple[str, ...] = ()
    """All of them: they come in outline, or as a reference where they have none."""
    brief: tuple[str, ...] = ()
    """Those that come as a reference even though they have an outline."""
    left_out: tuple[str, ...] = ()
    """Those that do not come at all: another fact says what they said."""


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
    stale: int = 0
    """Tokens that a fresh packet saves."""
    fresh: int = 0
    """Tokens that a fresh packet sends anew."""
    rent: int = 0
    """What carrying stale tokens has cost in this epoch, in thousandths of a token's price."""
    cached: int = 0
    """Tokens of the prompt that the provider is expected to have in its cache."""
    changes: tuple[Change, ...] = ()
    """The differences that could stand for whole texts in this wave."""
    spent: SpentFacts = SpentFacts()
    """Facts that a fresh packet of this wave does not show whole."""
    prices: CachePrices | None = None
    """What the session's model costs with its provider's cache; None: as the profile says."""

    @property
    def begins(self) -> bool:
        return self.reason != APPENDED

    def body(self) -> dict[str, Any]:
        """Return it as a JSON value; :func:`epoch_from_body` reverses it."""
        body = {
            **{name: getattr(self, name) for name in _PLAIN},
            "changes": [[change.fact_id, change.base, change.tokens] for change in self.changes],
        }
        for name, fact_ids in _spent_lists(self.spent).items():
            if fact_ids:
                body[name] = list(fact_ids)
        return body if self.prices is None else {**body, "prices": self.prices.document()}


def _spent_lists(spent: SpentFacts) -> dict[str, tuple[str, ...]]:
    return {"spent": spent.ids, "spent_brief": spent.brief, "spent_left_out": spent.left_out}


_PLAIN = tuple(
    name for name in Epoch.__struct_fields__ if name not in ("changes", "prices", "spent")
)
"""Fields whose values are numbers, texts and truths."""


def epoch_from_body(body: Mapping[str, Any]) -> Epoch:
    """Make an epoch from its body. Raises ``TypeError`` or ``KeyError`` for any other value."""
    changes = tuple(Change(*change) for change in body["changes"])
    prices = CachePrices(**body["prices"]) if "prices" in body else None
    lists = _spent_lists(SpentFacts())
    spent = SpentFacts(*(tuple(body.get(name, ())) for name in lists))
    plain = {name: value for name, value in body.items() if name not in lists}
    return Epoch(**{**plain, "changes": changes, "spent": spent, "prices": prices})
