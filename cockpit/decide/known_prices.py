"""Whether the price of a model is known: without one a limit of cost cannot be kept.

See ``docs/reference/configuration.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from msgspec import Struct

from cockpit.decide.model import ModelError
from cockpit.decide.model_settings import ModelPrice
from cockpit.store.context.packet_epoch import DEFAULT_PRICES, MAX_PRICE, CachePrices

_FREE = ("offline", "script", "outside")
"""Kinds of models that cost nothing, or nothing here."""


_TOKENS_OF_SESSION = (
    "limit tokens with --max-tokens in place of --max-cost; --max-waves limits the work too"
)
TOKENS_OF_CHAIN = (
    "limit tokens in place of --max-cost: --max-chains 3 ends the chain after three workers, each of"
    " which spends about `[work] session_token_limit` tokens; --max-wall limits the work too"
)
"""How to limit a chain without a price; a worker ends after the steps in which it passes its limit."""


def require_price(
    name: str, prices: Mapping[str, ModelPrice], *, otherwise: str = _TOKENS_OF_SESSION
) -> None:
    """Raise :class:`ModelError` (``config``) when no price is known for the model ``name``.

    ``prices`` are the user's, ``otherwise`` says what limits the work without a price. The price list takes
    a second or two to load: call it in a thread.
    """
    if name not in prices and not has_price(name):
        raise ModelError(
            "config",
            f"No price is known for {name}, so a limit of cost cannot be kept. Set its price in your"
            f' configuration, [prices."{name}"] with input and output, or {otherwise}.',
        )


def list_price(
    model: str, *, input_tokens: int, output_tokens: int, cached_tokens: int
) -> float | None:
    """Return what these tokens cost by the list price, in US dollars; None for an unknown model.

    ``model`` is a provider's own name of it. ``input_tokens`` include the cached ones. The price list takes a
    second or two to load: call it in a thread.
    """
    from genai_prices import Usage, calc_price

    usage = Usage(
        input_tokens=input_tokens, output_tokens=output_tokens, cache_read_tokens=cached_tokens
    )
    try:
        return float(calc_price(usage, model_ref=model).total_price)
    except (LookupError, ValueError):
        return None


def has_price(name: str) -> bool:
    """Whether a price is known for the model of that full name."""
    return name.partition(":")[0] in _FREE or _price_tokens(name) is not None


@cache
def find_cache_prices(
    name: str, price: ModelPrice | None, fallback: CachePrices
) -> CachePrices | None:
    """Return what a model's tokens cost with its provider's cache, in thousandths of their price without.

    ``price`` is the user's. A ``fallback`` (a profile's) that is not the default comes before the price list.
    None: no price is known, and ``fallback`` holds. The list takes a second or two to load: call it in a
    thread.
    """
    if price is not None:
        if not price.input:
            return None
        reading = price.input if price.cached_input is None else price.cached_input
        keeping = price.input if price.cache_write is None else price.cache_write
        return _as_parts(price.input, reading, keeping, fallback)
    is_default = (fallback.read, fallback.write) == (DEFAULT_PRICES.read, DEFAULT_PRICES.write)
    if not is_default or name.partition(":")[0] in _FREE:
        return None
    plain = _price_tokens(name)
    if not plain:
        return None
    read = _price_tokens(name, cache_read_tokens=_SAMPLE) or 0.0
    write = _price_tokens(name, cache_write_tokens=_SAMPLE) or 0.0
    return _as_parts(plain, read, write, fallback)


class TokenPrices(Struct, frozen=True):
    """What one token costs, in US dollars."""

    input: float
    cached_input: float
    output: float

    def blend(self, *, cached_share: float, output_share: float) -> float:
        """Return what a token costs on average; ``cached_share`` is that of the tokens read."""
        reading = self.input * (1 - cached_share) + self.cached_input * cached_share
        return reading * (1 - output_share) + self.output * output_share


@cache
def find_token_prices(name: str, price: ModelPrice | None) -> TokenPrices | None:
    """Return the prices of a model by its full name; None where no price is known.

    ``price`` is the user's. The list takes a second or two to load: call it in a thread.
    """
    if price is not None:
        cached = price.input if price.cached_input is None else price.cached_input
        return TokenPrices(price.input / 1e6, cached / 1e6, price.output / 1e6)
    kind = name.partition(":")[0]
    if kind in ("offline", "script"):
        return TokenPrices(0.0, 0.0, 0.0)
    if kind in _FREE or kind == "runner":
        return None  # an external agent knows what it costs; cockpit does not
    plain = _price_tokens(name)
    if plain is None:
        return None
    cached = _price_tokens(name, cache_read_tokens=_SAMPLE) or plain
    return TokenPrices(plain / _SAMPLE, cached / _SAMPLE, _price_answer(name) / _SAMPLE)


_SAMPLE = 10_000
"""Tokens that are priced to compare prices; some models cost more for prompts of 200,000 and more."""


def _as_parts(plain: float, read: float, write: float, fallback: CachePrices) -> CachePrices:
    read, write = (min(round(1_000 * part / plain), MAX_PRICE) for part in (read, write))
    return CachePrices(max(read, 1), write, fallback.lifetime_s)


def _price_tokens(name: str, **cached: int) -> float | None:
    """Return the list price of :data:`_SAMPLE` tokens of a prompt; None where the list has no such model."""
    price = _price_call(name, input_tokens=_SAMPLE, output_tokens=1, **cached)
    return None if price is None else float(price.input_price)


def _price_answer(name: str) -> float:
    """Return the list price of :data:`_SAMPLE` tokens of an answer of a model that the list has."""
    price = _price_call(name, input_tokens=_SAMPLE, output_tokens=_SAMPLE)
    return 0.0 if price is None else float(price.output_price)


def _price_call(name: str, **counts: int) -> Any:
    """Return the list price of a call; None where the list has no such model."""
    from genai_prices import Usage, calc_price

    kind, _, rest = name.partition(":")
    model, _, address = rest.partition("@")
    usage = Usage(**counts)
    try:
        if address:
            return calc_price(usage, model_ref=model, provider_api_url=address)
        return calc_price(usage, model_ref=model, provider_id=kind)
    except (LookupError, ValueError):
        return None
