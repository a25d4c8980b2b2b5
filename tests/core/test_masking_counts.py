"""Counts of tokens in JSON are not secrets, and what stands beside them is masked as ever."""

from __future__ import annotations

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from cockpit.core.canonical_json import canonical_json
from cockpit.core.quick_secret_check import lacks_secret_signs
from cockpit.core.secrets import mask_thoroughly, mask_value, masked_json

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


PIECES = (
    *(
        "token",
        "key",
        "password",
        "wave.created",
        "s-abcd2345-w12",
        "0123456789abcdef" * 4,
        "\n",
        ' "',
    ),
    *(
        SECRET,
        "hunter2hunter2",
        "ab://me:pass1234@host",
        "\ud800",
        "é",
        "curl -u",
        ": ",
        "=",
        "x" * 201,
    ),
)
TEXTS = st.lists(st.sampled_from(PIECES), max_size=3).map("".join)
VALUES = st.recursive(
    st.one_of(TEXTS, st.integers(-5, 5), st.booleans(), st.none()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=8,
)


@given(VALUES)
@settings(max_examples=examples(200), deadline=None)
def test_what_is_remembered_of_short_texts_is_what_masking_says(value: object) -> None:
    masked = canonical_json(_mask_anew(value))
    assert canonical_json(mask_value(value)) == masked
    # What has no sign of a secret as a whole is not looked at part by part.
    assert masked_json(value) in (masked, canonical_json(value))
    assert (masked_json(value) == masked) or lacks_secret_signs(canonical_json(value))


def _mask_anew(value: object) -> object:
    """Mask a value with nothing that is remembered, member by member."""
    if isinstance(value, str):
        return mask_thoroughly(value)
    if isinstance(value, dict):
        return {mask_thoroughly(key): _mask_named(key, member) for key, member in value.items()}
    return [_mask_anew(member) for member in value] if isinstance(value, list) else value


def _mask_named(key: str, member: object) -> object:
    if not isinstance(member, str):
        return _mask_anew(member)
    masked, lead = mask_thoroughly(member), f'{key}: "'
    assigned = mask_thoroughly(f'{lead}{masked}"')
    is_secret = assigned.startswith(f"{lead}[masked:")
    return assigned[len(lead) : -1] if is_secret else masked
