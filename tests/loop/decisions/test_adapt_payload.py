"""Payloads are read strictly: each that is not plainly right has its code, and nothing crashes."""

from __future__ import annotations

import json

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from cockpit.core.canonical_json import canonical_json
from cockpit.orient.profile_changes.apply_change import apply_change
from cockpit.orient.profile_changes.change_record import ChangeRefused
from cockpit.orient.profile_changes.parse_change import parse_change
from cockpit.orient.profile_changes.profile_json import import_profile, profile_document
from cockpit.store.context.profile_model import load_shipped

GOOD = {"base_profile_version": 1, "effective_waves": 3}


def body(**fields):
    return json.dumps(GOOD | fields)


def rule(**fields):
    return body(rules=[{"rule_id": "file", **fields}])


PLAIN = '{"base_profile_version": 1, "effective_waves": 3'
MALFORMED = {
    "not json": "{",
    "a list": "[]",
    "no base": '{"effective_waves": 3}',
    "no horizon": '{"base_profile_version": 1}',
    "no waves": body(effective_waves=0),
    "half a wave": body(effective_waves=1.5),
    "true waves": body(effective_waves=True),
    "text for a number": body(effective_waves="3"),
    "null": body(bands=None),
    "NaN": '{"base_profile_version": 1, "effective_waves": NaN}',
    "infinity": PLAIN + ', "rules": [{"rule_id": "file", "priority_weight": 1e999}]}',
    "a huge number": body(total_token_budget=10**12),
    "a number of 10,000 digits": '{"base_profile_version": ' + "9" * 10_000 + "}",
    "a negative floor": body(bands={"identity": {"min_tokens": -1}}),
    "a key twice": PLAIN + ', "effective_waves": 4}',
    "a rule twice": body(rules=[{"rule_id": "file"}, {"rule_id": "file"}]),
    "a rule without a name": body(rules=[{"priority_weight": 1}]),
    "a weight over four": rule(priority_weight=4.1),
    "a negative weight": rule(risk_weight=-0.1),
    "a half-life in words": rule(recency_half_life="long"),
    "on and off in words": rule(enabled="no"),
    "an unknown predicate": rule(predicate={"regex": ".*"}),
    "an unknown field": body(version=2),
    "an import's own field": body(removed_rules=["task"]),
    "half a surrogate pair": PLAIN + ', "reason": "\\ud800"}',
    "nested too deeply": "[" * 100_000,
    "too long": body(reason="x" * 300_000),
}
REFUSED = {name: (payload, "malformed") for name, payload in MALFORMED.items()} | {
    "no such band": (body(bands={"everything": {}}), "band_invalid"),
    "a predicate's band": (rule(predicate={"band": "all"}), "band_invalid"),
    "scopes": (body(scopes=["orientation.approve"]), "capability_relaxed"),
    "a policy": (body(policy="all"), "capability_relaxed"),
    "tools in a band": (body(bands={"capabilities": {"tools": 1}}), "capability_relaxed"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_and_with_which_code(name):
    payload, code = REFUSED[name]
    with pytest.raises(ChangeRefused) as refused:
        parse_change(payload)
    assert refused.value.code == code
    assert str(refused.value)


def test_an_export_imported_again_changes_nothing_but_what_differs():
    base = load_shipped()
    other = apply_change(
        parse_change(
            body(
                bands={"exploration": {"max_tokens": 20_000}},
                rules=[
                    {"rule_id": "tree", "priority_weight": 0.5},
                    {"rule_id": "radar", "source_type": "radar", "priority_weight": 2},
                ],
            )
        ),
        base,
    )
    change = import_profile(
        canonical_json(profile_document(other)), base, waves=0, reason="from there"
    )
    assert {rule.rule_id for rule in change.rules} == {"tree", "radar"}
    assert apply_change(change, base).digest == other.digest
    back = import_profile(canonical_json(profile_document(base)), other, waves=2, reason="back")
    assert back.removed_rules == ("radar",)
    assert apply_change(back, other).digest == base.digest


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
)
FIELD = st.sampled_from(
    [
        *("base_profile_version", "effective_waves", "bands", "rules", "total_token_budget"),
        *("reason", "namespace", "requested_by", "scopes"),
    ]
)


@pytest.mark.search
@settings(max_examples=examples(20))
@given(st.dictionaries(FIELD, JSON) | JSON)
def test_whatever_comes_is_read_or_refused(value):
    try:
        change = parse_change(json.dumps(value))
    except ChangeRefused as refused:
        assert refused.code in ("malformed", "band_invalid", "capability_relaxed")
    else:
        assert parse_change(change.text).body() == change.body()
