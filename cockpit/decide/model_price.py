"""Whether the price of a model is known: without one a limit of cost cannot be kept.

See ``docs/reference/configuration.md``.
"""

from __future__ import annotations

from collections.abc import Mapping

from cockpit.decide.model import ModelError
from cockpit.decide.model_settings import ModelPrice

_FREE = ("offline", "script", "outside")
"""Kinds of models that cost nothing, or nothing here."""


def require_price(name: str, prices: Mapping[str, ModelPrice]) -> None:
    """Raise :class:`ModelError` (``config``) when no price is known for the model ``name``.

    ``prices`` are the user's. The price list takes a second or two to load: call it in a thread.
    """
    if name not in prices and not has_price(name):
        raise ModelError(
            "config",
            f"No price is known for {name}, so a limit of cost cannot be kept. Set its price in your"
            f' configuration, [prices."{name}"] with input and output, or limit tokens with --max-tokens in'
            " place of --max-cost; --max-waves and, for chains, --max-wall limit the work too.",
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
    kind, _, rest = name.partition(":")
    if kind in _FREE:
        return True
    from genai_prices import Usage, calc_price

    model, _, address = rest.partition("@")
    usage = Usage(input_tokens=1, output_tokens=1)
    try:
        if address:
            calc_price(usage, model_ref=model, provider_api_url=address)
        else:
            calc_price(usage, model_ref=model, provider_id=kind)
    except (LookupError, ValueError):
        return False
    return True
