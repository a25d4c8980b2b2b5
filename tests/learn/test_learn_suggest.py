"""Suggestions: a step up for what was missed often, as a change that the guard lets through."""

from __future__ import annotations

import json

import pytest
from learn_world import World, fact
from msgspec.structs import replace

from cockpit.learn.suggest_weights import suggest_changes
from cockpit.orient.profile_changes.change_limits import AGENT_LIMITS
from cockpit.orient.profile_changes.guard import (
    CAPABILITY,
    CRITICAL,
    check_change,
    create_admin_policy,
)
from cockpit.orient.profile_changes.parse_change import parse_change
from cockpit.store.context import profiles
from cockpit.store.context.profile_model import Predicate, Rule

BUDGET = 15_000
BIG = 20_000


def missing(world: World, *refs: str) -> None:
    """A wave that missed these, as known one wave later."""
    wave = world.begin([fact(ref.partition(":")[0], ref, BIG) for ref in refs])
    world.decide(wave, ("request_context", ""))
    world.ask(wave, *refs)
    world.end(wave)


def suggested(world: World, profile=None):
    def read(connection):
        current = profile or profiles.load_current(connection, world.session.profile_id)
        return suggest_changes(connection, current, AGENT_LIMITS, (*CRITICAL, *CAPABILITY))

    return world.store.read_now(read)


def weights(payload):
    return {rule["rule_id"]: rule["priority_weight"] for rule in payload["rules"]}


def test_once_is_chance(small):
    world = small(BUDGET)
    missing(world, "file:a.py")
    world.end(world.begin())
    assert suggested(world) == []


def test_what_was_missed_twice_is_to_weigh_a_quarter_more(small):
    world = small(BUDGET)
    missing(world, "file:a.py", "file:b.py")
    missing(world, "file:c.py", "search:x")
    world.end(world.begin())
    (payload,) = suggested(world)
    assert weights(payload) == {"file": 1.5}
    assert (payload["base_profile_version"], payload["effective_waves"]) == (1, 10)
    assert "file in 2 of the last 3 waves" in payload["reason"]


def test_all_together_come_first_then_each_alone_the_most_missed_first(small):
    world = small(BUDGET)
    for number in range(3):
        missing(world, f"search:x{number}", *([f"file:{number}.py"] if number else []))
    world.end(world.begin())
    assert [weights(payload) for payload in suggested(world)] == [
        {"search": 1.125, "file": 1.5},
        {"search": 1.125},
        {"file": 1.5},
    ]


def test_the_guard_lets_every_suggestion_through_for_an_agent(small):
    world = small(BUDGET)
    for number in range(2):
        missing(world, f"search:x{number}", f"file:{number}.py", f"weather:{number}")
    world.end(world.begin())
    found = suggested(world)
    base = world.store.read_now(lambda c: profiles.load_current(c, world.session.profile_id))
    admin = create_admin_policy(BUDGET, horizon_max=50, floor_percent=100)
    assert len(found) == 4
    for payload in found:
        change = parse_change(json.dumps(payload))
        assert check_change(change, base, admin, AGENT_LIMITS, "agent/s-1") == ()


@pytest.mark.parametrize(
    ("weight", "after"), [(1000, 1.25), (2500, 3.0), (3000, None), (3900, None), (0, None)]
)
def test_no_step_leads_out_of_the_envelope(small, weight, after):
    world = small(BUDGET)
    for number in range(2):
        missing(world, f"file:{number}.py")
    world.end(world.begin())
    base = world.store.read_now(lambda c: profiles.load_current(c, world.session.profile_id))
    rules = tuple(
        replace(rule, priority_weight=weight) if rule.source_type == "file" else rule
        for rule in base.rules
    )
    found = suggested(world, replace(base, rules=rules))
    assert [weights(payload) for payload in found] == ([{"file": after}] if after else [])


def test_a_source_that_was_restricted_on_purpose_is_left_alone(small):
    world = small(BUDGET)
    for number in range(2):
        missing(world, f"file:{number}.py")
    world.end(world.begin())
    base = world.store.read_now(lambda c: profiles.load_current(c, world.session.profile_id))
    narrow = Rule("few", "file", Predicate(ref_prefix="file:src/"), 1000, 0, 0, 0)
    rules = (*(rule for rule in base.rules if rule.source_type != "file"), narrow)
    assert suggested(world, replace(base, rules=rules)) == []


def test_what_another_version_dropped_says_nothing_of_this_one(small):
    world = small(BUDGET)
    for number in range(2):
        missing(world, f"file:{number}.py")
    world.end(world.begin())
    base = world.store.read_now(lambda c: profiles.load_current(c, world.session.profile_id))
    assert suggested(world) != []
    world.store.write_now(lambda tx: profiles.insert_version(tx, replace(base, version=2)))
    assert suggested(world) == []


def crowded(world: World, number: int, source: str = "log", text: str = "see use.py") -> None:
    """A wave that missed a file, while facts of ``source`` held the band's room."""
    held = [
        fact(
            source, f"{source}:{number}.{n}", 400, utility=900_000, provenance={"path": f"p{n}.md"}
        )
        for n in range(14)
    ]
    used = fact("symbol", f"symbol:use{number}", 50, utility=990_000, provenance={"path": "use.py"})
    wave = world.begin([*held, used, fact("file", f"file:{number}.py", BIG)])
    world.decide(wave, ("request_context", ""), text=text)
    world.ask(wave, f"file:{number}.py")
    world.end(wave)


def test_what_held_the_room_of_what_was_missed_is_to_weigh_a_quarter_less(small):
    world = small(BUDGET)
    crowded(world, 1)
    crowded(world, 2)
    world.end(world.begin())
    found = suggested(world)
    assert [weights(payload) for payload in found] == [
        {"file": 1.5, "log": 0.6},
        {"file": 1.5},
        {"log": 0.6},
    ]
    assert (
        "Used the tokens of missed context, and served no decision: log in 2" in found[0]["reason"]
    )
    base = world.store.read_now(lambda c: profiles.load_current(c, world.session.profile_id))
    admin = create_admin_policy(BUDGET, horizon_max=50, floor_percent=100)
    for payload in found:
        assert (
            check_change(parse_change(json.dumps(payload)), base, admin, AGENT_LIMITS, "agent/s-1")
            == ()
        )


@pytest.mark.parametrize("source", [*CRITICAL, *CAPABILITY])
def test_what_is_critical_never_goes_down(small, source):
    world = small(BUDGET)
    crowded(world, 1, source)
    crowded(world, 2, source)
    world.end(world.begin())
    assert [weights(payload) for payload in suggested(world)] == [{"file": 1.5}]


@pytest.mark.parametrize(
    "third",
    [
        lambda world: missing(world, "log:other"),
        lambda world: crowded(world, 3, text="p3.md says so"),
    ],
    ids=["missed", "named by a decision"],
)
def test_what_was_of_use_once_does_not_go_down(small, third):
    world = small(BUDGET)
    crowded(world, 1)
    crowded(world, 2)
    third(world)
    world.end(world.begin())
    assert [weights(payload) for payload in suggested(world)] == [{"file": 1.5}]


@pytest.mark.parametrize("text", ["", "I think that all is well."])
def test_a_decision_that_names_nothing_says_nothing(small, text):
    world = small(BUDGET)
    crowded(world, 1, text=text)
    crowded(world, 2, text=text)
    world.end(world.begin())
    assert [weights(payload) for payload in suggested(world)] == [{"file": 1.5}]


@pytest.mark.parametrize(("weight", "after"), [(300, 0.25), (250, None), (100, None)])
def test_no_step_down_leads_out_of_the_envelope(small, weight, after):
    world = small(BUDGET)
    crowded(world, 1)
    crowded(world, 2)
    world.end(world.begin())
    base = world.store.read_now(lambda c: profiles.load_current(c, world.session.profile_id))
    rules = tuple(
        replace(rule, priority_weight=weight) if rule.source_type == "log" else rule
        for rule in base.rules
    )
    (first, *_) = suggested(world, replace(base, rules=rules))
    assert weights(first).get("log") == after
