"""Enter and Escape: their meaning by example; ``test_key_machine`` has what holds in any order of events."""

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
    OpenDiscussion,
    ReadOn,
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
    return Followed(clock.monotonic, "s-1")


class Followed(KeyPolicy):
    """A policy for which whatever is drawn is of the followed session, and was on the screen whole."""

    def note_drawn(self, front, is_whole=True):
        if front is not None and front.session != self.session:
            self.note_session(front.session, front)
        super().note_drawn(front)
        if front is not None:
            self.note_read(front.drawn, is_whole)


def press_enter(key_policy, text=""):
    key_policy.note_key()
    return key_policy.handle_enter(text)


def press_escape(key_policy, text=""):
    key_policy.note_key()
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
    key_policy.note_key(0.8)
    assert isinstance(key_policy.handle_enter(""), DoNothing), "TWO was not there when it went down"
    clock.advance(0.6)
    assert press_enter(key_policy) == Approve(TWO)


def test_a_key_within_half_a_second_disarms(key_policy, clock):
    key_policy.note_drawn(ONE)
    clock.advance(5)
    key_policy.note_key()
    clock.advance(0.4)
    assert not key_policy.is_armed
    assert isinstance(press_enter(key_policy), DoNothing)
    clock.advance(0.4)
    assert isinstance(press_enter(key_policy), DoNothing), "the Enter before was a key, too"
    clock.advance(0.6)
    assert press_enter(key_policy) == Approve(ONE)


@pytest.mark.parametrize("text", ["LGTM!", " Yes. "])
def test_words_that_agree_neither_approve_nor_discuss(key_policy, clock, text):
    """Enter is what they mean. Discussed, a short card would be suspended by them."""
    key_policy.note_drawn(ONE)
    clock.advance(5)
    assert press_enter(key_policy, text) == DoNothing(
        "words approve nothing: ^u clears them, then ⏎ approves"
    )
    clock.advance(1)
    assert press_enter(key_policy) == Approve(ONE)
    assert press_enter(key_policy, "yes, but rename it") == Discuss(ONE, "yes, but rename it")


def test_text_typed_as_a_proposal_arrives_goes_to_the_session(key_policy, clock):
    clock.advance(5)
    key_policy.note_drawn(ONE)
    assert press_enter(key_policy, "by the way") == Send("by the way", "s-1")


def test_escape_opens_a_discussion_and_the_next_words_belong_to_it(key_policy, clock):
    key_policy.note_drawn(ONE)
    clock.advance(1)
    assert press_escape(key_policy) == OpenDiscussion(ONE)
    clock.advance(1)
    assert isinstance(press_enter(key_policy), DoNothing), "it asks for words, and approves nothing"
    assert press_enter(key_policy, "keep the name") == Discuss(ONE, "keep the name")
    clock.advance(1)
    assert press_enter(key_policy) == Approve(ONE), (
        "the decision was refused, and nothing was locked"
    )


def test_a_second_escape_takes_the_discussion_back(key_policy, clock):
    key_policy.note_drawn(ONE)
    clock.advance(1)
    press_escape(key_policy)
    assert press_escape(key_policy, "half a thought") == LeaveMode()
    assert key_policy.discussing is None
    clock.advance(1)
    assert press_enter(key_policy) == Approve(ONE)


def test_what_was_read_of_one_says_nothing_of_another(key_policy, clock):
    key_policy.note_drawn(ONE)
    clock.advance(5)
    key_policy.note_drawn(TWO, is_whole=False)
    key_policy.note_read(ONE.drawn, True)
    clock.advance(5)
    assert press_enter(key_policy) == ReadOn()
    assert press_escape(key_policy) == DoNothing("look first: keys work in a moment")
    clock.advance(5)
    assert press_escape(key_policy) == OpenDiscussion(TWO), "a long one is discussed unread"


def test_high_risk_takes_two_different_keys(key_policy, clock):
    key_policy.note_drawn(HIGH)
    clock.advance(1)
    assert press_enter(key_policy) == AskSecondKey(HIGH)
    assert key_policy.handle_second_key("a") == LeaveMode(), "any other key takes it back"
    assert key_policy.handle_second_key("y") is None
    clock.advance(1)
    assert press_enter(key_policy) == AskSecondKey(HIGH)
    assert key_policy.handle_second_key("y") == Approve(HIGH)


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
