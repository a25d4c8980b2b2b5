"""What models cost with their provider's cache: by the user's prices, the price list, or the profile."""

from __future__ import annotations

import pytest

from cockpit.config.prices import read_prices
from cockpit.config.setting import OutOfBounds
from cockpit.decide.choose_model import DEFAULT_MODELS, model_named
from cockpit.decide.known_prices import find_cache_prices, has_price
from cockpit.decide.model_settings import ModelPrice, ModelSettings
from cockpit.store.context.packet_epoch import DEFAULT_PRICES, CachePrices


@pytest.mark.parametrize(
    ("name", "read", "write"),
    [
        ("anthropic:claude-sonnet-4-5", 100, 1_250),
        ("openai:gpt-5", 100, 1_000),
        ("openai:gpt-4o", 500, 1_000),
        ("openai:gpt-4", 1_000, 1_000),
    ],
)
def test_the_price_list_says_what_a_cache_saves(name: str, read: int, write: int) -> None:
    assert find_cache_prices(name, None, DEFAULT_PRICES) == CachePrices(read, write, 300)


@pytest.mark.parametrize("name", ["openai-compatible:local", "offline", "script:story.toml"])
def test_without_a_price_the_profile_says_it(name: str) -> None:
    assert find_cache_prices(name, None, DEFAULT_PRICES) is None


def test_the_users_prices_come_before_all_others() -> None:
    table = {"input": 2.0, "output": 8.0, "cached_input": 0.5, "cache_write": 3.0}
    prices = read_prices({"anthropic:claude-sonnet-4-5": table, "local": {"input": 2, "output": 8}})
    profile = CachePrices(200, 1_100, 60)
    mine = prices["anthropic:claude-sonnet-4-5"]
    assert find_cache_prices("anthropic:claude-sonnet-4-5", mine, profile) == CachePrices(
        250, 1_500, 60
    )
    # A cache that saves nothing: no epoch is worth its stale tokens.
    assert find_cache_prices("local", prices["local"], profile) == CachePrices(1_000, 1_000, 60)
    assert find_cache_prices("local", ModelPrice(0, 0), profile) is None
    with pytest.raises(OutOfBounds, match="cache_write"):
        read_prices({"local": {"input": 1, "output": 1, "cache_write": -1}})


def test_a_profile_that_has_prices_of_its_own_comes_before_the_list() -> None:
    profile = CachePrices(200, 1_100, 60)
    assert find_cache_prices("anthropic:claude-sonnet-4-5", None, profile) is None


@pytest.mark.parametrize("vendor", ["anthropic", "openai", "anthropic:"])
def test_a_provider_alone_is_its_default_model_and_has_a_price(vendor: str) -> None:
    name = model_named(vendor, ModelSettings(), {})
    assert name == f"{vendor.rstrip(':')}:{DEFAULT_MODELS[vendor.rstrip(':')]}"  # type: ignore[index]
    assert has_price(name)
