"""The guard refuses each danger with its own code, as the reference page says, and lets the rest through."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from cockpit.access.token_scopes import SCOPES
from cockpit.orient.profile_changes.apply_change import apply_change, changes_weights_only
from cockpit.orient.profile_changes.change_limits import AGENT_LIMITS, UNLIMITED, limits_for
from cockpit.orient.profile_changes.guard import (
    CAPABILITY,
    CODES,
    CRITICAL,
    check_change,
    create_admin_policy,
)
from cockpit.orient.profile_changes.parse_change import parse_change
from cockpit.store.context.profile_model import BANDS, Predicate, Rule, check, load_shipped

ADMIN = create_admin_policy(150_000, horizon_max=50, floor_percent=100)


def asked(own=False, **fields):
    given = {"base_profile_version": 1, "effective_waves": 3}
    return parse_change(json.dumps(given | fields), imported=own)


def codes(change, base=None, admin=ADMIN, envelope=UNLIMITED, namespace="main"):
    return [
        one.code for one in check_change(change, base or load_shipped(), admin, envelope, namespace)
    ]


REFUSED = {
    "stale_base": {"base_profile_version": 2, "rules": [{"rule_id": "file", "enabled": False}]},
    "horizon_too_long": {
        "effective_waves": 51,
        "rules": [{"rule_id": "search", "priority_weight": 2}],
    },
    "band_invalid": {"bands": {"situational": {"max_tokens": 50_000}}},
    "floor_below_minimum": {"bands": {"identity": {"min_tokens": 11_999}}},
    "over_budget": {"total_token_budget": 150_001},
    "critical_source": {"rules": [{"rule_id": "task", "enabled": False}]},
    "capability_relaxed": {"rules": [{"rule_id": "tools", "enabled": False}]},
    "namespace_spoofed": {
        "namespace": "agent/s-1",
        "rules": [{"rule_id": "search", "priority_weight": 2}],
    },
    "malformed": {"rules": [{"rule_id": "weather", "priority_weight": 2}]},
}


@pytest.mark.parametrize("code", REFUSED)
def test_each_danger_has_its_code_and_no_other(code):
    assert codes(asked(**REFUSED[code])) == [code]


@pytest.mark.parametrize(
    "fields",
    [
        {"rules": [{"rule_id": "search", "priority_weight": 4}]},
        {"rules": [{"rule_id": "file", "enabled": False}]},
        {"rules": [{"rule_id": "radar", "source_type": "radar", "priority_weight": 2}]},
        {"bands": {"identity": {"min_tokens": 14_000}}},
        {"bands": {"situational": {"target_tokens": 80_000, "max_tokens": 120_000}}},
        {"total_token_budget": 140_000},
        {"rules": [{"rule_id": "task", "priority_weight": 1.5}]},
        {"namespace": "main", "requested_by": "main", "total_token_budget": 140_000},
    ],
)
def test_what_is_safe_passes(fields):
    assert codes(asked(**fields)) == []


def test_a_change_of_nothing_is_none():
    assert codes(asked(rules=[{"rule_id": "search"}])) == ["malformed"]
    assert codes(asked(bands={"identity": {"min_tokens": 12_000}})) == ["malformed"]


def test_the_administrator_may_allow_lower_floors():
    lower = asked(bands={"identity": {"min_tokens": 6_000}})
    assert codes(lower) == ["floor_below_minimum"]
    assert codes(lower, admin=create_admin_policy(150_000, horizon_max=50, floor_percent=50)) == []


@pytest.mark.parametrize("source", CRITICAL)
@pytest.mark.parametrize(
    "rule",
    [
        {"enabled": False},
        {"priority_weight": 0},
        {"priority_weight": 0.3, "risk_weight": 0},
        {"predicate": {"ref_prefix": "nowhere:"}},
        {"predicate": {"min_utility": 1_000_000}},
        {"predicate": {"max_age_waves": 0}},
        {"recency_half_life": 1},
        {"novelty_weight": 1},
    ],
    ids=lambda rule: " ".join(rule),
)
def test_no_way_to_suppress_a_critical_source(source, rule):
    entry = {"rule_id": source, "source_type": source, **rule}
    assert "critical_source" in codes(asked(rules=[entry])), entry


@pytest.mark.parametrize("source", CRITICAL)
def test_a_second_rule_does_not_get_around_it(source):
    """A stronger rule for the same source is met first: it must not be weaker in any other way."""
    entry = {
        "rule_id": "sneaky",
        "source_type": source,
        "priority_weight": 4,
        "recency_half_life": 1,
        "predicate": {"ref_prefix": source},
    }
    assert "critical_source" in codes(asked(rules=[entry]))


def test_a_weak_rule_that_was_there_does_not_take_over():
    """Switching the strong general rule off must not leave a weak one of the same source."""
    weak = Rule("weak", "task", Predicate(), 100, 0, 0, 0)
    base = replace(load_shipped(), rules=(*load_shipped().rules, weak))
    assert "critical_source" in codes(
        asked(rules=[{"rule_id": "task", "enabled": False}]), base=base
    )


@pytest.mark.parametrize("source", CAPABILITY)
def test_what_an_agent_may_do_is_not_hidden(source):
    entry = {"rule_id": source, "source_type": source, "priority_weight": 0}
    assert codes(asked(rules=[entry])) == ["capability_relaxed"]


@pytest.mark.parametrize(
    "fields",
    [
        {"effective_waves": 21, "rules": [{"rule_id": "search", "priority_weight": 2}]},
        {"rules": [{"rule_id": "search", "priority_weight": 3.1}]},
        {"rules": [{"rule_id": "search", "priority_weight": 0.2}]},
        {"rules": [{"rule_id": "search", "enabled": False}]},
        {"rules": [{"rule_id": "file", "predicate": {"ref_prefix": "file:src"}}]},
        {"bands": {"situational": {"target_tokens": 50_000, "max_tokens": 54_000}}},
        {"bands": {"exploration": {"max_tokens": 37_501}}},
        {"total_token_budget": 149_999},
    ],
    ids=["horizon", "high", "low", "off", "narrowed", "band down", "band up", "budget"],
)
def test_an_agent_stays_in_its_envelope(fields):
    change = asked(**fields)
    assert codes(change, envelope=AGENT_LIMITS, namespace="agent/s-1") == ["outside_envelope"]
    assert codes(change) == []


def test_namespaces_have_their_envelopes():
    assert limits_for("main") is UNLIMITED
    assert limits_for("agent/s-1") is limits_for("ci") is limits_for("main/x") is AGENT_LIMITS


def test_who_it_claims_to_be_from_counts_for_nothing():
    for claim in ({"namespace": "main"}, {"requested_by": "main"}, {"namespace": ""}):
        change = asked(rules=[{"rule_id": "search", "priority_weight": 2}], **claim)
        assert codes(change, envelope=AGENT_LIMITS, namespace="agent/s-1") == ["namespace_spoofed"]


WEIGHT = st.integers(0, 4000).map(lambda n: n / 1000)
RULES = st.lists(
    st.fixed_dictionaries(
        {"rule_id": st.sampled_from([rule.rule_id for rule in load_shipped().rules])},
        optional={
            "priority_weight": WEIGHT,
            "risk_weight": st.sampled_from([0, 0.5, 1]),
            "novelty_weight": st.sampled_from([0, 0.5, 1]),
            "recency_half_life": st.integers(0, 30),
            "enabled": st.booleans(),
            "predicate": st.sampled_from([{}, {"ref_prefix": "x"}, {"min_utility": 5}]),
        },
    ),
    max_size=5,
    unique_by=lambda rule: rule["rule_id"],
)
ROOM = st.integers(0, 200_000)
ROOMS = st.dictionaries(
    st.sampled_from(BANDS),
    st.fixed_dictionaries(
        {}, optional={"min_tokens": ROOM, "target_tokens": ROOM, "max_tokens": ROOM}
    ),
    max_size=3,
)


@pytest.mark.search
@settings(max_examples=examples(25))
@given(
    RULES,
    ROOMS,
    st.none() | st.integers(1, 300_000),
    st.integers(1, 80),
    st.sampled_from(["main", "agent/s-1"]),
)
def test_whatever_passes_is_safe(rules, rooms, total, waves, namespace):
    """Nothing that gets through lowers a floor, widens a bound, or hides what counts."""
    fields = {"rules": rules, "bands": rooms, "effective_waves": waves}
    if total is not None:
        fields["total_token_budget"] = total
    base, change = load_shipped(), asked(**fields)
    if check_change(change, base, ADMIN, limits_for(namespace), namespace):
        return
    after = check(apply_change(change, base))
    assert after.total_token_budget <= ADMIN.budget_max
    assert 1 <= after.duration_waves <= ADMIN.horizon_max
    for band in after.bands:
        assert band.min_tokens >= ADMIN.floors[band.name]
    for source in (*CRITICAL, *CAPABILITY):
        named = [rule for rule in after.rules if rule.source_type == source]
        general = [rule for rule in named if rule.enabled and rule.predicate == Predicate()]
        assert general or not named
        best = max(
            (rule.priority_weight * (1000 + rule.risk_weight) for rule in general), default=0
        )
        assert best >= 1_000_000 or not named
    if namespace != "main":
        assert all(rule.enabled for rule in after.rules)
        assert after.total_token_budget == base.total_token_budget
        if not rooms:
            assert changes_weights_only(base, after)


PAGE = (
    Path(__file__).resolve().parents[3] / "docs" / "reference" / "profile-changes.md"
).read_text("utf-8")


def section(title):
    return PAGE.partition(f"## {title}")[2].partition("\n## ")[0]


def test_the_example_is_a_change_that_an_agent_may_make():
    (example,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    admin = create_admin_policy(150_000, horizon_max=50, floor_percent=100)
    assert (
        check_change(parse_change(example), load_shipped(), admin, AGENT_LIMITS, "agent/s-1") == ()
    )


def test_every_code_is_explained_once_and_in_order():
    listed = re.findall(r"^\| `(\w+)` \|", section("What is refused"), re.MULTILINE)
    assert listed == list(CODES)


def test_every_critical_source_and_scope_is_named():
    assert [name for name in CRITICAL if f"`{name}`" not in section("What is refused")] == []
    assert [scope for scope in SCOPES if f"`{scope}`" not in section("Who may")] == []
