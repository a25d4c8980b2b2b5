"""The model settings of the configuration; nothing else is loaded to read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field

Thinking = Literal["default", "off", "minimal", "low", "medium", "high"]


class ModelPrice(Struct, frozen=True):
    """What a model costs, in US dollars for a million tokens.

    Tokens that are read from the provider's cache (``cached_input``) or kept in it (``cache_write``) cost as
    ``input`` where that is None.
    """

    input: float
    output: float
    cached_input: float | None = None
    cache_write: float | None = None

    def cost(self, *, input_tokens: int, output_tokens: int, cached_tokens: int) -> float:
        """Return what these tokens cost, in US dollars; ``input_tokens`` include the cached ones."""
        cached = min(cached_tokens, input_tokens)
        reading = self.input if self.cached_input is None else self.cached_input
        fresh = input_tokens - cached
        return (self.input * fresh + reading * cached + self.output * output_tokens) / 1_000_000


class ModelSettings(Struct, frozen=True):
    """The ``[model]`` and ``[prices]`` tables. ``timeout_s`` is the longest silence in seconds before a
    call fails, ``max_retries`` the retries after its first attempt."""

    model: str | None = None
    base_url: str | None = None
    timeout_s: float = 120.0
    max_retries: int = 4
    context_window: int | None = None
    """The tokens that the model takes at once; None: as the price list says."""
    thinking: Thinking = "default"
    """How much a model thinks before it answers; ``default``: as its provider sets it."""
    prices: Mapping[str, ModelPrice] = field(default_factory=dict)
    """The user's prices by the full name of a model, for those that no price list has."""
