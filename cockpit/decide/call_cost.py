"""What one call of a model cost: by the price list, or by the user's own price where no list has the model.

See ``docs/reference/configuration.md``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.decide.model import Done
from cockpit.decide.model_settings import ModelPrice

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse


def cost_by_list(response: ModelResponse) -> dict[str, float]:
    """Return the call's cost in US dollars, that of the tokens read, and that of those in the cache."""
    usage = response.usage
    if not response.model_name or not (usage.input_tokens or usage.output_tokens):
        return {}
    from genai_prices import Usage as Counts

    try:
        price = response.cost()
        if not usage.input_tokens:
            return {"cost_usd": float(price.total_price)}
        # As tokens that were not cached: with so many in all, because long prompts have prices of their own.
        written = usage.cache_write_tokens
        counts = (
            Counts(input_tokens=usage.input_tokens, cache_write_tokens=written),
            Counts(input_tokens=usage.input_tokens),
        )
        without, plain = (price.model_price.calc_price(count)["input_price"] for count in counts)
    except (LookupError, ValueError):
        return {}  # no price list knows this model, or its counts cannot be priced
    cached = price.input_price - without + plain * usage.cache_read_tokens / usage.input_tokens
    return {
        "cost_usd": float(price.total_price),
        "input_usd": float(price.input_price),
        "cached_usd": float(cached),
    }


def add_cost(done: Done, price: ModelPrice | None) -> Done:
    """Return the end of a call with the user's price, where no price list knows the model."""
    usage = done.usage
    if price is None or usage.cost_usd is not None:
        return done
    read, cached = usage.input_tokens, usage.cached_tokens
    input_usd = price.cost(input_tokens=read, output_tokens=0, cached_tokens=cached)
    cached_usd = price.cost(input_tokens=cached, output_tokens=0, cached_tokens=cached)
    cost = price.cost(input_tokens=read, output_tokens=usage.output_tokens, cached_tokens=cached)
    return replace(
        done, usage=replace(usage, cost_usd=cost, input_usd=input_usd, cached_usd=cached_usd)
    )
