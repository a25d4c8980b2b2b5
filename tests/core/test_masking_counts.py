"""Counts of tokens in JSON are no secrets, and what stands beside them is masked as ever."""

from __future__ import annotations

import pytest

from cockpit.core.canonical_json import canonical_json
from cockpit.core.secrets import mask_value, masked_json

SECRET = "ghp_" + "a1B2" * 9


@pytest.mark.parametrize(
    "value",
    [
        {"input_tokens": 5, "output_tokens": None, "token_budget": -1},
        {"input_tokens": 5, "note": SECRET},
        {"token": "hunter2hunter2", "input_tokens": 5},
        {"input_tokens": "hunter2hunter2"},
        {"note": f'"access_token":0{SECRET}', "n": 1},
        {"note": '"token":0", password="hunter2hunter2"'},
        {"a_token": [SECRET, 5], "b_token": {"api_key": "hunter2hunter2"}},
        ["token", 5, "x:", {"token_used": 1.5e300}],
        {"pwd": "x1y2z3a"},
        {"url": "ab://:c@"},
    ],
)
def test_masked_json_is_the_json_of_masked_values(value: object) -> None:
    assert masked_json(value) == canonical_json(mask_value(value))
