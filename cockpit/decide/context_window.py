"""How many tokens a model takes at once, and the budget of packets that follows from it.

See ``docs/reference/kernel.md``, profiles and bands.
"""

from __future__ import annotations

from functools import cache

from cockpit.decide.model_settings import ModelSettings

_LISTED = ("anthropic", "openai", "openai-compatible")
"""Kinds of models that the price list may know."""
MARGIN = 16
"""This part of a window stays free: providers count tokens of their own."""


def fit_budget(name: str, budget: int, settings: ModelSettings) -> int:
    """Return ``budget``, or less where the model of that full name takes less; both in tokens.

    The first look at the price list takes a second or two: call it in a thread.
    """
    window = settings.context_window or _find_listed_window(name)
    return budget if window is None else min(budget, window - window // MARGIN)


@cache
def _find_listed_window(name: str) -> int | None:
    """Return the window of a model by the price list; None where it does not say."""
    kind, _, rest = name.partition(":")
    if kind not in _LISTED:
        return None
    from genai_prices.data_snapshot import get_snapshot

    model, _, address = rest.partition("@")
    provider = None if address or kind == "openai-compatible" else kind
    try:
        _, listed = get_snapshot().find_provider_model(model, None, provider, address or None)
    except LookupError:
        return None
    return listed.context_window
