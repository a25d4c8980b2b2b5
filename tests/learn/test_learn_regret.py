"""Regret: what was let through and turned out wrong."""

from __future__ import annotations

import pytest

from cockpit.store.context import wave_feedback


def regrets_of(world, wave):
    return world.store.read_now(
        lambda c: wave_feedback.find_latest(c, wave.wave_id)
    ).assessment.regrets


def test_a_change_that_is_put_back_is_regretted(world):
    first = world.begin()
    world.write(first, "a.py", "old", "new")
    world.end(first)
    second = world.begin()
    world.write(second, "a.py", "new", "newer")
    world.end(second)
    assert regrets_of(world, first) == ()
    third = world.begin()
    world.write(third, "a.py", "newer", "old")
    rows = world.end(third)
    assert regrets_of(world, first) == ("undone",)
    assert regrets_of(world, second) == ()
    assert {row.wave_id for row in rows} == {first.wave_id, third.wave_id}


@pytest.mark.parametrize(
    ("revision", "why"), [("0123456789ab", ("undone",)), ("0123", ()), ("fedcba98", ())]
)
def test_a_reverted_commit_is_regretted(world, revision, why):
    first = world.begin()
    commit = {"commit": "0123456789abcdef"}
    world.act(first, "git_commit", {"paths": ["a.py"]}, commit)
    world.end(first)
    second = world.begin()
    argv = ["git", "revert", "--no-edit", revision]
    world.act(second, "run", {"argv": argv}, {"argv": argv, "exit_code": 0})
    world.end(second)
    assert regrets_of(world, first) == why


def test_red_tests_after_a_change_are_regret_and_halve_its_score(world):
    wave = world.begin()
    world.write(wave, "a.py", "0", "1")
    world.test(wave, 1)
    (row,) = world.end(wave)
    assert row.assessment.regrets == ("tests_failed",)
    # tests 0 (3), actions 1 (2), signals 1 (2): 4/7, halved
    assert row.assessment.score == round(4 / 14, 4)


@pytest.mark.parametrize(("path", "why"), [("a.py", ("follow_up_refused",)), ("b.py", ())])
def test_a_follow_up_that_is_turned_down_is_regret_of_what_it_followed(world, path, why):
    first = world.begin()
    world.write(first, "a.py", "0", "1")
    world.end(first)
    second = world.begin()
    world.propose(
        second, "next", "rejected", kind="action", body={"key": "k", "payload": {"path": path}}
    )
    world.end(second)
    assert regrets_of(world, first) == why


def test_what_happens_too_late_is_not_laid_at_its_door(world):
    first = world.begin()
    world.write(first, "a.py", "old", "new")
    world.end(first)
    for _ in range(8):
        world.end(world.begin())
    last = world.begin()
    world.write(last, "a.py", "new", "old")
    world.end(last)
    assert regrets_of(world, first) == ()
