"""The rows: appended with the wave, replaced by newer ones, never changed; and a person's verdict."""

from __future__ import annotations

import sqlite3

import pytest
from store.store_world import CANARY

from cockpit.core.errors import NotFound
from cockpit.learn.judge_waves import FeedbackRefused, record_verdict
from cockpit.store.context import wave_feedback
from cockpit.store.journal import journal, verify_chain
from cockpit.store.sessions import waves


@pytest.fixture
def shared(store):
    """A store of each test's own: they count its rows."""
    return store


def rows_of(store, action="feedback.recorded"):
    found = store.read_now(lambda c: journal.rows(c, limit=100_000))
    return [row for row in found if row.action == action]


def say(world, wave, verdict, words=""):
    return world.store.write_now(lambda tx: record_verdict(tx, wave.wave_id, verdict, words))


def test_a_wave_that_ends_is_judged_once_and_journalled_with_its_profile(world, store):
    wave = world.begin()
    (made,) = world.end(wave)
    (row,) = rows_of(store)
    assert (row.wave_id, row.session_id) == (wave.wave_id, world.session.session_id)
    assert (row.profile_id, row.profile_version) == (world.session.profile_id, 1)
    assert (row.packet_id, row.actor) == (made.packet_id, "engine")
    assert row.raw_detail() == {
        "wave_id": wave.wave_id,
        "ordinal": 1,
        "decision_quality_score": 1.0,
        "measures": {"signals": 1.0},
        "missed_signals": [],
        "regret": False,
        "regrets": [],
        "operator": None,
    }
    later = world.begin()
    assert [row.wave_id for row in world.end(later)] == [later.wave_id], "nothing changed"
    assert store.read_now(verify_chain.verify).ok


def test_later_outcomes_add_a_row_and_the_newest_counts(world, store):
    first = world.begin()
    world.write(first, "a.py", "0", "1")
    world.end(first)
    second = world.begin()
    world.test(second, 1)
    world.end(second)
    history = store.read_now(lambda c: wave_feedback.select_history(c, first.wave_id))
    assert [row.assessment.regrets for row in history] == [(), ("tests_failed",)]
    assert store.read_now(lambda c: wave_feedback.find_latest(c, first.wave_id)) == history[-1]
    listed = store.read_now(lambda c: wave_feedback.select_recent(c, world.session.session_id))
    assert [row.ordinal for row in listed] == [2, 1]
    assert listed[1] == history[-1]


def test_a_row_is_never_changed_or_removed(world, store):
    world.end(world.begin())
    for statement in (
        "UPDATE orientation_feedback SET decision_quality_score=1",
        "DELETE FROM orientation_feedback",
        "REPLACE INTO orientation_feedback SELECT * FROM orientation_feedback",
    ):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            store.write_now(lambda tx, s=statement: tx.execute(s))


def test_a_persons_verdict_is_kept_whatever_is_learned_after_it(world, store):
    first = world.begin()
    world.write(first, "a.py", "0", "1")
    world.end(first)
    made = say(world, first, "bad", "it broke the build")
    assert made.assessment.score == 0.25
    assert made.assessment.regrets == ("operator",)
    second = world.begin()
    world.test(second, 0)
    world.end(second)
    now = store.read_now(lambda c: wave_feedback.find_latest(c, first.wave_id))
    assert now.assessment.operator.words == "it broke the build"
    assert now.assessment.measures["tests"] == 1.0
    assert now.assessment.regrets == ("operator",)
    assert rows_of(store)[1].actor == "person"


def test_a_newer_verdict_replaces_the_older_and_its_regret(world):
    wave = world.begin()
    world.end(wave)
    say(world, wave, "bad")
    made = say(world, wave, "good", f"on second thought {CANARY}")
    assert (made.assessment.score, made.assessment.regrets) == (1.0, ())
    assert CANARY not in made.assessment.operator.words


def test_what_is_no_verdict_or_no_wave_with_a_packet_is_refused(world, store):
    wave = world.begin()
    world.end(wave)
    for verdict, words in (("fine", ""), ("", ""), ("good", "x" * 4_001)):
        with pytest.raises(FeedbackRefused):
            say(world, wave, verdict, words)
    assert len(rows_of(store)) == 1
    with pytest.raises(NotFound):
        store.write_now(lambda tx: record_verdict(tx, "s-none-w1", "good"))
    sid = world.session.session_id
    made = store.write_now(lambda tx: waves.create(tx, session_id=sid, trace_id=""))
    with pytest.raises(NotFound, match="no packet"):
        say(world, made, "good")
