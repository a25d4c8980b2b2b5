"""The two keys: what they mean at which moment, on a clock of the test's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cockpit.app.key_policy import Approve, AskSecond, Discuss, Leave, Nothing, Say, Steering
from cockpit.core.clock import FixedClock
from widgets.views import ProposalView

ONE = ProposalView("p-1", "action", "edit a.py", "medium", "d1", session="s-1")
TWO = ProposalView("p-2", "action", "edit b.py", "medium", "d2", session="s-2")
HIGH = replace(ONE, risk="high", second_key=True)


@pytest.fixture
def clock():
    return FixedClock()


@pytest.fixture
def steering(clock):
    return Steering(clock.monotonic)


def press_enter(steering, text=""):
    steering.press("enter")
    return steering.enter(text)


def press_escape(steering, text=""):
    steering.press("escape")
    return steering.escape(text)


def test_enter_approves_what_was_seen_for_half_a_second(steering, clock):
    steering.drawn(ONE)
    assert isinstance(press_enter(steering), Nothing)
    clock.advance(0.6)
    assert press_enter(steering) == Approve(ONE)


def test_a_key_within_half_a_second_disarms(steering, clock):
    steering.drawn(ONE)
    clock.advance(5)
    steering.press("x")
    clock.advance(0.4)
    assert not steering.armed
    assert isinstance(press_enter(steering), Nothing)
    clock.advance(0.4)
    assert isinstance(press_enter(steering), Nothing), "the Enter before was a key, too"
    clock.advance(0.6)
    assert press_enter(steering) == Approve(ONE)


def test_another_revision_has_to_be_seen_anew(steering, clock):
    steering.drawn(ONE)
    clock.advance(1)
    steering.drawn(replace(ONE, digest="other"))
    assert isinstance(press_enter(steering), Nothing)


def test_an_age_does_not_disarm(steering, clock):
    steering.drawn(ONE)
    clock.advance(1)
    steering.drawn(replace(ONE, age_s=1))
    assert steering.armed


def test_what_arrives_between_press_and_meaning_is_not_approved(steering, clock):
    steering.drawn(ONE)
    clock.advance(1)
    steering.press("enter")
    steering.drawn(TWO)
    assert isinstance(steering.enter(""), Nothing)


def test_what_is_covered_has_to_be_seen_anew(steering, clock):
    steering.drawn(ONE)
    clock.advance(1)
    steering.cover()
    clock.advance(5)
    assert not steering.armed
    steering.drawn(ONE)
    assert not steering.armed
    clock.advance(0.6)
    assert steering.armed


def test_what_cannot_be_seen_cannot_be_decided(steering, clock):
    steering.drawn(None)
    clock.advance(5)
    assert press_enter(steering) == Nothing()
    assert press_escape(steering) == Nothing()


def test_text_is_discussion_of_the_open_proposal_and_never_approves(steering, clock):
    steering.drawn(ONE)
    clock.advance(5)
    assert press_enter(steering, "rather not") == Discuss(ONE, "rather not")


def test_text_typed_as_a_proposal_arrives_goes_to_the_session(steering, clock):
    clock.advance(5)
    steering.drawn(ONE)
    assert press_enter(steering, "by the way") == Say("by the way")


def test_escape_discusses_and_the_next_words_belong_to_it(steering, clock):
    steering.drawn(ONE)
    clock.advance(1)
    assert press_escape(steering) == Discuss(ONE)
    steering.begin(ONE)
    steering.discussing = ONE
    clock.advance(1)
    steering.drawn(TWO)
    clock.advance(1)
    assert isinstance(press_enter(steering), Nothing), "it asks for words, and approves nothing"
    assert press_enter(steering, "keep the name") == Say("keep the name", "s-1")
    clock.advance(1)
    assert press_enter(steering) == Approve(TWO)


def test_escape_needs_the_same_care(steering, clock):
    steering.drawn(ONE)
    assert isinstance(press_escape(steering), Nothing)


def test_escape_with_text_does_nothing(steering, clock):
    steering.drawn(ONE)
    clock.advance(1)
    assert press_escape(steering, "half a thought") == Nothing()


def test_high_risk_takes_two_different_keys(steering, clock):
    steering.drawn(HIGH)
    clock.advance(1)
    assert press_enter(steering) == AskSecond(HIGH)
    assert steering.second_key("y") == Approve(HIGH)
    assert steering.second_key("y") is None


@pytest.mark.parametrize("key", ["enter", "escape", "a", "space"])
def test_any_other_key_takes_the_question_back(steering, clock, key):
    steering.drawn(HIGH)
    clock.advance(1)
    press_enter(steering)
    assert steering.second_key(key) == Leave()
    assert steering.second_key("y") is None


def test_a_proposal_that_changed_meanwhile_is_not_approved_by_the_second_key(steering, clock):
    steering.drawn(HIGH)
    clock.advance(1)
    press_enter(steering)
    steering.drawn(replace(HIGH, digest="other"))
    assert steering.second_key("y") is None


def test_a_decision_under_way_is_not_made_twice(steering, clock):
    steering.drawn(ONE)
    clock.advance(1)
    assert press_enter(steering) == Approve(ONE)
    steering.begin(ONE)
    clock.advance(1)
    assert press_enter(steering) == Nothing()
    steering.undo(ONE)
    assert isinstance(press_enter(steering), Nothing)
    clock.advance(1)
    assert press_enter(steering) == Approve(ONE)


def test_without_a_session_words_begin_one(steering, clock):
    steering.drawn(ONE)
    clock.advance(5)
    steering.press("enter")
    assert steering.enter("something new", beginning=True) == Say("something new")
