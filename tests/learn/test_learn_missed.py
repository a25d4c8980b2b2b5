"""Missed signals: asked for although a dropped or shortened fact held it."""

from __future__ import annotations

from learn_world import fact

from cockpit.learn.missed_context import find_missed
from cockpit.store.context.facts import Level
from cockpit.store.sessions import waves

BUDGET = 15_000
BIG = 20_000
"""More than any band of that budget holds: dropped whole."""


def asked(world, made, *items, status="approved"):
    """What a wave that oriented on ``made`` missed when it asked for ``items``."""
    wave = world.begin(made)
    world.decide(wave, ("request_context", ""))
    world.ask(wave, *items, status=status)
    return world.store.read_now(lambda connection: find_missed(connection, wave))


OVERLAPS = [
    ("file:a.py", "file:a.py"),
    ("file:a.py", "file:a.py:3-9"),
    ("file:a.py:1-20", "file:a.py:20-40"),
    ("file:src/a.py", "file:src/*.py"),
    ("diff:main..HEAD in src/a.py", "diff:main..HEAD"),
    ("diff:main..HEAD in src/a.py", "diff:main..HEAD in src"),
    ("search:def area", "search:def area in *.py"),
    ("file:a.py", "file:a.py @outline"),
]
OTHERS = [
    ("file:a.py", "file:b.py"),
    ("file:a.py", "file:a.pyi"),
    ("file:a.py:1-20", "file:a.py:21-40"),
    ("file:a.py", "symbol:a.py"),
    ("diff:main..HEAD in src/a.py", "diff:main..HEAD in docs"),
    ("diff:main..HEAD", "diff:main..HEAD~1"),
    ("file:a.py @outline", "file:a.py"),
]


def test_a_dropped_fact_was_missed_by_a_request_that_overlaps_it(small):
    for held, item in OVERLAPS:
        kind = held.partition(":")[0]
        (signal,) = asked(small(BUDGET), [fact(kind, held, BIG)], item)
        known = (signal.item, signal.source_ref, signal.held, signal.tokens)
        assert known == (item, held, "dropped", BIG)
        assert (signal.source_type, signal.band) == (kind, "situational")
    for held, item in OTHERS:
        kind = held.partition(":")[0]
        assert asked(small(BUDGET), [fact(kind, held, BIG)], item) == ()


def test_a_fact_in_the_packet_is_not_missed(small):
    assert asked(small(BUDGET), [fact("file", "file:a.py", 50)], "file:a.py") == ()


def test_a_shortened_fact_is_missed_only_by_who_asks_for_more(small):
    world = small(BUDGET)
    short = fact("file", "file:a.py", BIG, reference=Level("a.py", 5))
    (found,) = asked(world, [short], "file:a.py")
    assert found.held == "reference"
    session = world.session.session_id
    world.end(world.store.read_now(lambda c: waves.find_latest(c, session)))
    assert asked(world, [], "file:a.py @reference") == ()


def test_a_request_that_was_not_granted_missed_nothing(small):
    made = [fact("file", "file:a.py", BIG)]
    assert asked(small(BUDGET), made, "file:a.py", status="rejected") == ()


def test_what_was_out_of_date_was_not_missed(small):
    world = small(BUDGET)
    world.end(world.begin([fact("file", "file:a.py", BIG)]))
    newer = fact("file", "file:a.py", 50, provenance={"sha256": "2"})
    assert asked(world, [newer], "file:a.py") == ()


def test_it_is_flagged_when_the_next_wave_has_read_it_and_lowers_the_score(small):
    world = small(BUDGET)
    first = world.begin([fact("file", "file:a.py", BIG)])
    world.decide(first, ("request_context", ""))
    world.ask(first, "file:a.py", status="pending")
    (before,) = world.end(first)
    assert (before.assessment.missed, before.assessment.score) == ((), 1.0)
    second = world.begin()
    world.grant(first, "file:a.py")
    after, _ = world.end(second)
    assert (after.wave_id, [signal.source_ref for signal in after.assessment.missed]) == (
        first.wave_id,
        ["file:a.py"],
    )
    assert after.assessment.measures == {"calls": 1.0, "signals": 0.5}
    assert after.assessment.score == 0.6667
