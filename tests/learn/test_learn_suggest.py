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

BUDGET = 15_000
BIG = 20_000


@pytest.fixture
def shared(store):
    """A store of each test's own: they add up what sessions missed."""
    return store


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


def current(world: World):
    return world.store.read_now(lambda c: profiles.load_current(c, world.session.profile_id))


def is_allowed(world: World, payload) -> bool:
    """Whether the guard lets an agent propose this."""
    admin = create_admin_policy(BUDGET, horizon_max=50, floor_percent=100)
    change = parse_change(json.dumps(payload))
    return check_change(change, current(world), admin, AGENT_LIMITS, "agent/s-1") == ()


def weighing(world: World, source: str, weight: int):
    """The profile with another weight for a source."""
    profile = current(world)
    rules = tuple(
        replace(rule, priority_weight=weight) if rule.source_type == source else rule
        for rule in profile.rules
    )
    return replace(profile, rules=rules)


def weights(payload):
    return {rule["rule_id"]: rule["priority_weight"] for rule in payload["rules"]}


def test_once_is_chance(small):
    world = small(BUDGET)
    missing(world, "file:a.py")
    world.end(world.begin())
    assert suggested(world) == []


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


def test_no_step_leads_out_of_the_envelope(small):
    world = small(BUDGET)
    for number in (1, 2):
        crowded(world, number)
    world.end(world.begin())
    for weight, after in ((1000, 1.25), (2500, 3.0), (3000, None), (3900, None), (0, None)):
        (first, *_) = suggested(world, weighing(world, "file", weight))
        assert weights(first).get("file") == after
    for weight, after in ((300, 0.25), (250, None), (100, None)):
        (first, *_) = suggested(world, weighing(world, "log", weight))
        assert weights(first).get("log") == after


def crowded(world: World, number: int, source: str = "log", text: str = "see use.py") -> None:
    """A wave that missed a file, while facts of ``source`` held the band's room."""
    held = [
        fact(source, f"{source}:{number}.{n}", 400, utility=900_000, provenance={"path": f"p{n}.md"})
        for n in range(14)
    ]  # fmt: skip
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
    assert all(is_allowed(world, payload) for payload in found)
    crowded(world, 3, text="p3.md says so")  # of use once
    world.end(world.begin())
    assert [weights(payload) for payload in suggested(world)] == [{"file": 1.5}]


@pytest.mark.parametrize("source", [CRITICAL[0], CAPABILITY[-1]])
def test_a_critical_source_never_goes_down(small, source):
    world = small(BUDGET)
    crowded(world, 1, source)
    crowded(world, 2, source)
    world.end(world.begin())
    assert [weights(payload) for payload in suggested(world)] == [{"file": 1.5}]
