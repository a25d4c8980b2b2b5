"""Enter and Escape: their meaning at each moment, on a clock of the test."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.app.key_policy import (
    Approve,
    AskSecondKey,
    Discuss,
    DoNothing,
    KeyPolicy,
    LeaveMode,
    Send,
)
from cockpit.core.clock import FixedClock
from widgets.views import ProposalView

ONE = ProposalView("p-1", "action", "edit a.py", "medium", "d1", session="s-1")
TWO = ProposalView("p-2", "action", "edit b.py", "medium", "d2", session="s-2")
HIGH = replace(ONE, risk="high", second_key=True)


@pytest.fixture
def clock():
    return FixedClock()


@pytest.fixture
def key_policy(clock):
    return KeyPolicy(clock.monotonic)


def press_enter(key_policy, text=""):
    key_policy.note_key("enter")
    return key_policy.handle_enter(text)


def press_escape(key_policy, text=""):
    key_policy.note_key("escape")
    return key_policy.handle_escape(text)


def test_enter_approves_what_was_seen_for_half_a_second(key_policy, clock):
    key_policy.note_drawn(ONE)
    assert isinstance(press_enter(key_policy), DoNothing)
    clock.advance(0.6)
    assert press_enter(key_policy) == Approve(ONE)


def test_a_key_that_waited_counts_for_what_was_seen_when_it_went_down(key_policy, clock):
    key_policy.note_drawn(ONE)
    clock.advance(5)
    # The user presses Enter, the machine is busy, and another process decides ONE meanwhile.
    key_policy.note_drawn(TWO)
    clock.advance(0.7)
    key_policy.note_key("enter", 0.8)
    assert isinstance(key_policy.handle_enter(""), DoNothing), "TWO was not there when it went down"
    clock.advance(0.6)
    assert press_enter(key_policy) == Approve(TWO)


def test_a_key_that_waited_decides_what_it_was_pressed_for(key_policy, clock):
    key_policy.note_drawn(ONE)
    clock.advance(5)
    key_policy.note_key("enter", 2.0)
    assert key_policy.handle_enter("") == Approve(ONE)


def test_a_key_within_half_a_second_disarms(key_policy, clock):
    key_policy.note_drawn(ONE)
    clock.advance(5)
    key_policy.note_key("x")
    clock.advance(0.4)
    assert not key_policy.is_armed
    assert isinstance(press_enter(key_policy), DoNothing)
    clock.advance(0.4)
    assert isinstance(press_enter(key_policy), DoNothing), "the Enter before was a key, too"
    clock.advance(0.6)
    assert press_enter(key_policy) == Approve(ONE)


def test_another_revision_has_to_be_seen_anew(key_policy, clock):
    key_policy.note_drawn(ONE)
    clock.advance(1)
    key_policy.note_drawn(replace(ONE, digest="other"))
    assert isinstance(press_enter(key_policy), DoNothing)


def test_an_age_does_not_disarm(key_policy, clock):
    key_policy.note_drawn(ONE)
    clock.advance(1)
    key_policy.note_drawn(replace(ONE, age_s=1))
    assert key_policy.is_armed


def test_what_arrives_between_press_and_meaning_is_not_approved(key_policy, clock):
    key_policy.note_drawn(ONE)
    clock.advance(1)
    key_policy.note_key("enter")
    key_policy.note_drawn(TWO)
    assert isinstance(key_policy.handle_enter(""), DoNothing)


def test_what_is_covered_has_to_be_seen_anew(key_policy, clock):
    key_policy.note_drawn(ONE)
    clock.advance(1)
    key_policy.note_covered()
    clock.advance(5)
    assert not key_policy.is_armed
    key_policy.note_drawn(ONE)
    assert not key_policy.is_armed
    clock.advance(0.6)
    assert key_policy.is_armed


def test_what_cannot_be_seen_cannot_be_decided(key_policy, clock):
    key_policy.note_drawn(None)
    clock.advance(5)
    assert press_enter(key_policy) == DoNothing()
    assert press_escape(key_policy) == DoNothing()


def test_text_is_discussion_of_the_open_proposal_and_never_approves(key_policy, clock):
    key_policy.note_drawn(ONE)
    clock.advance(5)
    assert press_enter(key_policy, "rather not") == Discuss(ONE, "rather not")


def test_text_typed_as_a_proposal_arrives_goes_to_the_session(key_policy, clock):
    clock.advance(5)
    key_policy.note_drawn(ONE)
    assert press_enter(key_policy, "by the way") == Send("by the way")


def test_escape_discusses_and_the_next_words_belong_to_it(key_policy, clock):
    key_policy.note_drawn(ONE)
    clock.advance(1)
    assert press_escape(key_policy) == Discuss(ONE)
    key_policy.lock(ONE)
    key_policy.discussing = ONE
    clock.advance(1)
    key_policy.note_drawn(TWO)
    clock.advance(1)
    assert isinstance(press_enter(key_policy), DoNothing), "it asks for words, and approves nothing"
    assert press_enter(key_policy, "keep the name") == Send("keep the name", "s-1")
    clock.advance(1)
    assert press_enter(key_policy) == Approve(TWO)


def test_escape_needs_the_same_care(key_policy, clock):
    key_policy.note_drawn(ONE)
    assert isinstance(press_escape(key_policy), DoNothing)


def test_escape_with_text_does_nothing(key_policy, clock):
    key_policy.note_drawn(ONE)
    clock.advance(1)
    assert press_escape(key_policy, "half a thought") == DoNothing()


def test_high_risk_takes_two_different_keys(key_policy, clock):
    key_policy.note_drawn(HIGH)
    clock.advance(1)
    assert press_enter(key_policy) == AskSecondKey(HIGH)
    assert key_policy.handle_second_key("y") == Approve(HIGH)
    assert key_policy.handle_second_key("y") is None


@pytest.mark.parametrize("key", ["enter", "escape", "a", "space"])
def test_any_other_key_takes_the_question_back(key_policy, clock, key):
    key_policy.note_drawn(HIGH)
    clock.advance(1)
    press_enter(key_policy)
    assert key_policy.handle_second_key(key) == LeaveMode()
    assert key_policy.handle_second_key("y") is None


def test_a_proposal_that_changed_meanwhile_is_not_approved_by_the_second_key(key_policy, clock):
    key_policy.note_drawn(HIGH)
    clock.advance(1)
    press_enter(key_policy)
    key_policy.note_drawn(replace(HIGH, digest="other"))
    assert key_policy.handle_second_key("y") is None


def test_a_decision_under_way_is_not_made_twice(key_policy, clock):
    key_policy.note_drawn(ONE)
    clock.advance(1)
    assert press_enter(key_policy) == Approve(ONE)
    key_policy.lock(ONE)
    clock.advance(1)
    assert press_enter(key_policy) == DoNothing()
    key_policy.unlock(ONE)
    assert isinstance(press_enter(key_policy), DoNothing)
    clock.advance(1)
    assert press_enter(key_policy) == Approve(ONE)


def test_without_a_session_words_begin_one(key_policy, clock):
    key_policy.note_drawn(ONE)
    clock.advance(5)
    key_policy.note_key("enter")
    assert key_policy.handle_enter("something new", starts_session=True) == Send("something new")
