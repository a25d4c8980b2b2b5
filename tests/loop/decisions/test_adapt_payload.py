"""Payloads are read strictly: each that is not plainly right has its code, and nothing crashes."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.api.schemas import CHANGE
from cockpit.core.canonical_json import canonical_json
from cockpit.orient.profile_changes.apply_change import apply_change
from cockpit.orient.profile_changes.change_record import ChangeRefused
from cockpit.orient.profile_changes.parse_change import parse_change
from cockpit.orient.profile_changes.profile_json import (
    import_profile,
    profile_differences,
    profile_document,
)
from cockpit.store.context.profile_model import load_shipped

RULE = CHANGE["properties"]["rules"]["items"]
GOOD = {"base_profile_version": 1, "effective_waves": 3}


def body(**fields):
    return json.dumps(GOOD | fields)


REFUSED = {
    "not json": ("{", "malformed"),
    "nothing": ("", "malformed"),
    "a list": ("[]", "malformed"),
    "no base": ('{"effective_waves": 3}', "malformed"),
    "no horizon": ('{"base_profile_version": 1}', "malformed"),
    "no waves": (body(effective_waves=0), "malformed"),
    "negative waves": (body(effective_waves=-1), "malformed"),
    "half a wave": (body(effective_waves=1.5), "malformed"),
    "true waves": (body(effective_waves=True), "malformed"),
    "words for a number": (body(effective_waves="3"), "malformed"),
    "null": (body(bands=None), "malformed"),
    "NaN": ('{"base_profile_version": 1, "effective_waves": NaN}', "malformed"),
    "NaN weight": (
        '{"base_profile_version": 1, "effective_waves": 3,'
        ' "rules": [{"rule_id": "file", "priority_weight": NaN}]}',
        "malformed",
    ),
    "infinity": (
        '{"base_profile_version": 1, "effective_waves": 3,'
        ' "rules": [{"rule_id": "file", "priority_weight": 1e999}]}',
        "malformed",
    ),
    "a huge number": (body(total_token_budget=10**12), "malformed"),
    "a number of 10,000 digits": (
        '{"base_profile_version": ' + "9" * 10_000 + ', "effective_waves": 3}',
        "malformed",
    ),
    "a negative floor": (body(bands={"identity": {"min_tokens": -1}}), "malformed"),
    "a huge floor": (body(bands={"identity": {"min_tokens": 10**12}}), "malformed"),
    "a key twice": (
        '{"base_profile_version": 1, "effective_waves": 3, "effective_waves": 4}',
        "malformed",
    ),
    "a band twice": (
        '{"base_profile_version": 1, "effective_waves": 3,'
        ' "bands": {"identity": {}, "identity": {"min_tokens": 1}}}',
        "malformed",
    ),
    "a rule twice": (body(rules=[{"rule_id": "file"}, {"rule_id": "file"}]), "malformed"),
    "a rule without a name": (body(rules=[{"priority_weight": 1}]), "malformed"),
    "a rule's name as hostile text": (body(rules=[{"rule_id": "a\u001b[2J"}]), "malformed"),
    "a weight over four": (body(rules=[{"rule_id": "file", "priority_weight": 4.1}]), "malformed"),
    "a negative weight": (body(rules=[{"rule_id": "file", "risk_weight": -0.1}]), "malformed"),
    "a half-life in words": (
        body(rules=[{"rule_id": "file", "recency_half_life": "long"}]),
        "malformed",
    ),
    "on and off in words": (body(rules=[{"rule_id": "file", "enabled": "no"}]), "malformed"),
    "an unknown predicate": (
        body(rules=[{"rule_id": "file", "predicate": {"regex": ".*"}}]),
        "malformed",
    ),
    "an unknown field": (body(version=2), "malformed"),
    "an import's own field": (body(removed_rules=["task"]), "malformed"),
    "half a surrogate pair": (
        '{"base_profile_version": 1, "effective_waves": 3, "reason": "\\ud800"}',
        "malformed",
    ),
    "nested too deeply": ("[" * 100_000, "malformed"),
    "too long": (body(reason="x" * 300_000), "malformed"),
    "no such band": (body(bands={"everything": {}}), "band_invalid"),
    "a predicate's band": (
        body(rules=[{"rule_id": "file", "predicate": {"band": "all"}}]),
        "band_invalid",
    ),
    "scopes": (body(scopes=["orientation.approve"]), "capability_relaxed"),
    "a policy": (body(policy="all"), "capability_relaxed"),
    "tools in a band": (body(bands={"capabilities": {"tools": 1}}), "capability_relaxed"),
}


NAME = RULE["properties"]["rule_id"]["pattern"]


@given(st.from_regex(NAME, fullmatch=True) | st.text(max_size=120))
def test_a_rule_is_named_as_its_schema_says(name):
    payload = body(rules=[{"rule_id": name, "source_type": "file"}])
    if re.search(NAME, name, re.ASCII) and not name.endswith("\n"):
        assert parse_change(payload).rules[0].rule_id == name
    else:
        with pytest.raises(ChangeRefused):
            parse_change(payload)


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_and_with_which_code(name):
    payload, code = REFUSED[name]
    with pytest.raises(ChangeRefused) as refused:
        parse_change(payload)
    assert refused.value.code == code
    assert str(refused.value)


def test_a_number_that_is_too_long_is_named_for_a_person():
    payload, _ = REFUSED["a number of 10,000 digits"]
    with pytest.raises(ChangeRefused) as refused:
        parse_change(payload)
    assert "9999… is too large a number" in str(refused.value)
    assert "sys." not in str(refused.value)


def test_bytes_that_are_no_text_are_refused():
    with pytest.raises(ChangeRefused):
        parse_change(b"\xff\xfe{}")


def test_a_good_one_is_read_and_written_back():
    change = parse_change(
        body(
            bands={"situational": {"max_tokens": 90_000}, "identity": {"min_tokens": 13_000}},
            rules=[{"source_type": "search", "priority_weight": 1.25}],
            total_token_budget=140_000,
            reason="rain",
        )
    )
    assert [band.name for band in change.bands] == ["identity", "situational"]
    assert (change.rules[0].rule_id, change.rules[0].priority_weight) == ("search", 1250)
    assert parse_change(change.text) == change


def test_what_is_left_out_stays_as_it_is():
    base = load_shipped()
    after = apply_change(
        parse_change(body(rules=[{"rule_id": "search", "priority_weight": 2}])), base
    )
    found = profile_differences(base, after)
    assert found["bands"] == []
    assert [entry["rule_id"] for entry in found["rules"]] == ["search"]
    was, now = found["rules"][0]["before"], found["rules"][0]["after"]
    assert now == was | {"priority_weight": 2.0}


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


@pytest.mark.parametrize(
    "broken", [{"bands": []}, {"bands": {}}, {"rules": {}}, {"scopes": ["all"]}, {"bands": None}]
)
def test_a_broken_export_is_refused(broken):
    with pytest.raises(ChangeRefused):
        import_profile(
            json.dumps(profile_document(load_shipped()) | broken),
            load_shipped(),
            waves=0,
            reason="",
        )


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


@given(st.dictionaries(FIELD, JSON) | JSON)
def test_whatever_comes_is_read_or_refused(value):
    try:
        change = parse_change(json.dumps(value))
    except ChangeRefused as refused:
        assert refused.code in ("malformed", "band_invalid", "capability_relaxed")
    else:
        assert parse_change(change.text).body() == change.body()


@given(st.binary(max_size=200))
def test_bytes_are_read_or_refused(data):
    with pytest.raises(ChangeRefused):
        parse_change(data)
