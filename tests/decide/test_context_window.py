"""The budget of packets follows what the model takes at once."""

from __future__ import annotations

import pytest

from cockpit.decide.context_window import fit_budget
from cockpit.decide.model_settings import ModelSettings


@pytest.mark.parametrize(
    ("name", "told", "budget"),
    [
        ("openai:gpt-4o", None, 120_000),  # 128,000 by the price list
        ("openai-compatible:mine@http://127.0.0.1:1/v1", None, 150_000),
        ("openai-compatible:mine@http://127.0.0.1:1/v1", 32_768, 30_720),
    ],
)
def test_a_budget_leaves_a_sixteenth_of_a_smaller_window_free(name, told, budget):
    assert fit_budget(name, 150_000, ModelSettings(context_window=told)) == budget
