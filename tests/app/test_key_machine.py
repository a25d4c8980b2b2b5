"""Enter and Escape as a state machine: nothing is approved that was not shown, armed and in front; nothing
goes to another session than the header names; no draft is lost.
"""

from __future__ import annotations

import re
from typing import ClassVar, get_args

import msgspec
import pytest
from examples import examples
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from msgspec.structs import replace

from cockpit.app.key_policy import (
    ARM_S,
    Approve,
    AskSecondKey,
    Discuss,
    DoNothing,
    KeyPolicy,
    LeaveMode,
    OpenDiscussion,
    ReadOn,
    Refuse,
    Send,
    Step,
)
from cockpit.core.clock import FixedClock
from widgets.proposals.reading import Part, Reading
from widgets.views import ProposalView, Risk

pytestmark = pytest.mark.slow

SESSIONS = ("", "s-1", "s-2")
_MOMENT_S = 0.001
KINDS = ("action", "context", "permission", "profile", "skill")


class Press(msgspec.Struct):
    """What an onlooker saw as a key went down."""

    key: str
    text: str
    header: str
    front: ProposalView | None
    armed: bool
    down: float
    """When it went down, in seconds; it may reach the screen later."""
    stamp: float


class Keys(RuleBasedStateMachine):
    """A screen around the policy, with an onlooker who keeps their own books of what is drawn."""

    reached: ClassVar[set[type[Step]]] = set()
    """The steps that any of the runs came to."""
    most_approved: ClassVar[int] = 0
    """How many any of the runs approved with one key."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = FixedClock()
        self.policy = KeyPolicy(self.clock.monotonic)
        self.count = 0
        self.pending: dict[str, tuple[ProposalView, int]] = {}
        """Proposals that wait, with their number of lines."""
        self.followed, self.front_id = "", ""
        self.is_alone = False
        self.height, self.width, self.top = 20, 80, 0
        self.has_dialog = self.is_tab_away = False
        self.prompt = ""
        self.stamp = 0.0
        self.underway: list[Press] = []
        """Keys that went down and did not reach the busy screen yet."""
        self.pressed: list[Press] = []
        """Keys that reached the screen, and no widget has handled yet."""
        self.words = self.arrived = 0
        self.deliveries: list[str] = []
        """What was sent or went along with a decision."""
        self.reading = Reading()
        # What is drawn, and the onlooker's books.
        self.header = ""
        self.drawn: ProposalView | None = None
        self.drawn_since = self.whole_since = self.last_key = float("-inf")
        self.lines: dict[tuple[str, int], set[int]] = {}
        """The lines of each proposal, in each width, that were drawn."""
        self.whole: set[str] = set()
        self.discussed: ProposalView | None = None

    # What happens in the world

    @rule(
        session=st.sampled_from(SESSIONS),
        kind=st.sampled_from(KINDS),
        lines=st.sampled_from([1, 5, 19, 21, 60, 400]),
        risk=st.sampled_from(["low", "medium", "high"]),
    )
    def arrive(self, session: str, kind: str, lines: int, risk: Risk) -> None:
        self.count += 1
        name, second = f"p-{self.count}", risk == "high"
        front = ProposalView(
            name, kind, name, risk, f"d{self.count}", session=session, second_key=second
        )
        self.pending[name] = (front, lines)

    @precondition(lambda self: self.pending)
    @rule(data=st.data())
    def expire(self, data: st.DataObject) -> None:
        del self.pending[data.draw(st.sampled_from(sorted(self.pending)))]

    @precondition(lambda self: self.pending)
    @rule(data=st.data(), lines=st.sampled_from([3, 30]))
    def revise(self, data: st.DataObject, lines: int) -> None:
        name = data.draw(st.sampled_from(sorted(self.pending)))
        self.count += 1
        self.pending[name] = (replace(self.pending[name][0], digest=f"d{self.count}"), lines)

    @rule(session=st.sampled_from(SESSIONS))
    def attach(self, session: str) -> None:
        self.followed = session

    @rule(
        kind=st.sampled_from(KINDS),
        lines=st.sampled_from([1, 19, 60]),
        risk=st.sampled_from(["low", "low", "high"]),
        count=st.sampled_from([1, 3]),
        session=st.sampled_from(SESSIONS),
        reads=st.sampled_from([800, 800, 800, 20]),
        keys=st.sampled_from(
            [("enter",), ("enter",), ("escape", "enter"), ("word", "enter"), ("escape", "escape")]
        ),
    )
    def look_at_a_proposal(
        self, kind: str, lines: int, risk: Risk, count: int, session: str, reads: int,
        keys: tuple[str, ...],
    ) -> None:  # fmt: skip
        """Follow a session, read what it asks, wait until the keys work, and press some."""
        if not any(front.session == session for front, _ in self.pending.values()):
            for _ in range(count):
                self.arrive(session, kind, lines, risk)
        if self.has_dialog:
            self.open_or_close_dialog()
        self.followed, self.is_tab_away, self.is_alone = session, False, False
        self.height, self.width = 20, 80
        self.draw()
        for top in range(0, reads, self.height):
            self.top = top
            self.draw()
        self.clock.advance(0.6)
        self.draw()
        for key in keys:
            self.push(key, slow=False)
            self.clock.advance(0.6)
            self.draw()

    @precondition(lambda self: self.drawn is not None and not self.has_dialog)
    @rule(slow=st.booleans())
    def press_enter_as_one_alike_comes(self, slow: bool) -> None:
        """It belongs to what is in front, which was armed without it."""
        self.clock.advance(0.6)
        self.draw()
        if self.drawn is not None:
            self.arrive(self.drawn.session, self.drawn.kind, 1, self.drawn.risk)
        self.draw()
        self.push("enter", slow=slow)

    @precondition(lambda self: self.pending)
    @rule(data=st.data())
    def go_to_another(self, data: st.DataObject) -> None:
        """Alt+N: put a proposal in front by itself, and follow its session."""
        name = data.draw(st.sampled_from(sorted(self.pending)))
        assert self.policy.handle_second_key("alt+n") in (None, LeaveMode())
        self.reach(self.go_down("alt+n"))
        self.front_id, self.followed = name, self.pending[name][0].session
        self.is_alone = True
        self.draw()

    @rule(height=st.sampled_from([0, 4, 20, 60]), width=st.sampled_from([10, 60, 100]))
    def resize(self, height: int, width: int) -> None:
        self.height, self.width = height, width
        self.draw()

    @rule()
    def open_or_close_dialog(self) -> None:
        self.has_dialog = not self.has_dialog
        if self.has_dialog:
            self.policy.note_covered()
            self.drawn, self.drawn_since = None, float("inf")
        else:
            self.draw()

    @precondition(lambda self: not self.has_dialog)
    @rule()
    def turn_tab(self) -> None:
        self.is_tab_away = not self.is_tab_away
        self.draw()

    @rule(top=st.integers(0, 400))
    def scroll(self, top: int) -> None:
        self.top = top
        self.draw()

    @rule(seconds=st.sampled_from([0.1, 0.3, 0.6, 5.0]))
    def wait(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.draw()

    # What is drawn

    def draw(self) -> None:
        """Draw a frame, as the screen does."""
        self.clock.advance(_MOMENT_S)
        now = self.clock.monotonic()
        own = [front for front, _ in self.pending.values() if front.session == self.followed]
        waiting = next((each for each in own if each.proposal_id == self.front_id), None)
        self.is_alone &= waiting is not None
        waiting = waiting or (own[0] if own else None)
        if waiting is not None and waiting.risk == "low" and not self.is_alone:
            first, *rest = (each for each in own if (each.kind, each.risk) == (waiting.kind, "low"))
            waiting = replace(first, alike=tuple(rest))
        self.front_id = waiting.proposal_id if waiting is not None else ""
        self.header = self.followed
        self.policy.note_session(self.followed, waiting)
        if waiting is None or (self.discussed and waiting.drawn != self.discussed.drawn):
            self.discussed = None
        if self.has_dialog:
            return
        visible = None if self.is_tab_away or not self.height else waiting
        self.policy.note_drawn(visible)
        if visible is None or self.drawn is None or visible.drawn != self.drawn.drawn:
            self.drawn_since = now
        self.drawn = visible
        if visible is None:
            return
        if visible.drawn != self.reading.drawn:
            self.reading, self.top = Reading(visible.drawn), 0
        # A line of 80 cells takes more lines in a narrower pane.
        lines = sum(self.pending[each.proposal_id][1] for each in visible.together)
        lines *= 1 if self.width >= 80 else 2
        top = min(self.top, max(0, lines - self.height))
        if not self.reading.is_whole:
            self.reading.lay_out([Part("body", self.width, lines)])
            self.reading.note("body", top, top + self.height)
        self.policy.note_read(visible.drawn, self.reading.is_whole)
        if self.width >= 20:
            seen = self.lines.setdefault((visible.drawn, self.width), set())
            seen |= set(range(top, min(lines, top + self.height)))
            if len(seen) == lines and visible.drawn not in self.whole:
                self.whole.add(visible.drawn)
                self.whole_since = now

    # Keys

    def go_down(self, key: str) -> Press:
        """Press a key, and note what an onlooker saw then. No two things happen at once."""
        self.clock.advance(_MOMENT_S)
        now = self.clock.monotonic()
        quiet = now - max(self.drawn_since, self.last_key) >= ARM_S
        front = self.drawn
        armed = front is not None and quiet and front.drawn in self.whole
        self.stamp += 1
        self.last_key = now
        return Press(key, "", self.header, front, armed, now, self.stamp)

    def reach(self, press: Press) -> None:
        """Let a key reach the screen, before any widget."""
        self.arrived += 1
        waited = self.clock.monotonic() - press.down
        self.policy.note_key(waited_s=waited, stamp=press.stamp)

    def push(self, key: str, *, slow: bool, later: bool = False) -> None:
        """Press a key: on a ``slow`` machine it reaches the screen later, and a widget may be ``later``."""
        press = self.go_down(key)
        self.underway.append(press)
        if not slow:
            self.catch_up(later)

    @rule(later=st.booleans())
    def catch_up(self, later: bool) -> None:
        """Let the keys that went down reach the screen, in order."""
        presses, self.underway = self.underway, []
        for press in presses:
            if self.has_dialog:
                continue  # the dialog has them
            getattr(self, f"take_{press.key}")(press, later)

    @precondition(lambda self: not self.has_dialog)
    @rule(
        key=st.sampled_from(("word", "enter", "enter", "escape", "y", "always")),
        slow=st.booleans(),
        later=st.booleans(),
    )
    def press(self, key: str, slow: bool, later: bool) -> None:
        """``always`` is a key of the proposal's pane that approves with a rule."""
        self.push(key, slow=slow, later=later)

    def take_word(self, press: Press, later: bool) -> None:
        assert self.policy.handle_second_key("x") in (None, LeaveMode())
        self.reach(press)
        self.handle()  # a prompt handles its keys in order
        self.words += 1
        self.prompt += f"w{self.words};"

    def take_enter(self, press: Press, later: bool) -> None:
        assert self.policy.handle_second_key("enter") in (None, LeaveMode())
        self.reach(press)
        self.pressed.append(replace(press, text=self.prompt))
        self.prompt = ""  # what was entered is on its way
        if not later:
            self.handle()

    def take_escape(self, press: Press, later: bool) -> None:
        is_taken = self.policy.handle_second_key("escape") is not None
        self.reach(press)
        if not is_taken:
            self.pressed.append(press)
        if not later:
            self.handle()

    def take_y(self, press: Press, later: bool) -> None:
        step = self.policy.handle_second_key("y")
        self.reach(press)
        if isinstance(step, Approve):
            assert step.proposal.drawn in self.whole
            assert self.drawn is not None
            assert self.drawn.drawn == step.proposal.drawn
            assert step.proposal.session == self.header
            self.decide(step.proposal)
        else:
            self.handle()
            self.words += 1
            self.prompt += f"w{self.words};"

    def take_always(self, press: Press, later: bool) -> None:
        assert self.policy.handle_second_key("a") in (None, LeaveMode())
        self.reach(press)
        front = self.policy.take_armed()
        if front is not None:
            assert press.armed
            assert press.front is not None
            assert press.front.drawn == front.drawn
            assert self.drawn is not None
            assert self.drawn.drawn == front.drawn
            assert front.session == press.header
            self.decide(front)

    @rule()
    def handle(self) -> None:
        """Let the widgets handle the keys that reached the screen before."""
        presses, self.pressed = self.pressed, []
        for press in presses:
            if press.key == "enter":
                step = self.policy.handle_enter(press.text, stamp=press.stamp)
                self.check_enter(press, step)
            else:
                self.check_escape(press, self.policy.handle_escape(self.prompt, stamp=press.stamp))

    def check_enter(self, press: Press, step: Step) -> None:
        self.reached.add(type(step))
        match step:
            case Approve(front) | AskSecondKey(front):
                assert press.text == ""
                assert press.armed, "it was shown whole, for half a second without a key"
                assert press.front is not None
                assert press.front.drawn == front.drawn
                assert self.drawn is not None
                assert self.drawn.drawn == front.drawn, "and is still in front"
                assert front.session == press.header
                assert isinstance(step, AskSecondKey) == front.second_key
                assert all(each.risk == "low" for each in front.together if front.alike)
                if isinstance(step, Approve):
                    Keys.most_approved = max(Keys.most_approved, len(front.together))
                    for each in front.together:
                        self.decide(each)
            case Send(text, session):
                assert text == press.text
                assert session == press.header == self.header
                self.deliveries.append(text)
            case Discuss(front, text) | Refuse(front, text):
                assert text == press.text
                assert front.session == press.header == self.header
                about = self.discussed or press.front
                assert about is not None
                assert about.drawn == front.drawn
                assert text or isinstance(step, Refuse)
                self.decide(front, text)
            case ReadOn():
                assert press.text == ""
                assert self.drawn is not None
                unseen = self.reading.first_unseen
                assert unseen is not None
                self.top = unseen[1]
            case DoNothing():
                self.prompt = press.text + self.prompt  # the screen puts it back
            case other:
                raise AssertionError(other)

    def check_escape(self, press: Press, step: Step) -> None:
        self.reached.add(type(step))
        match step:
            case OpenDiscussion(front):
                assert front.session
                assert self.prompt == ""
                assert press.front is not None
                assert press.front.drawn == front.drawn
                self.discussed = front
            case Discuss(front, ""):
                assert press.armed
                assert front.session == press.header == ""
                self.decide(front)
            case LeaveMode():
                assert self.discussed is not None
                self.discussed = None
            case DoNothing():
                pass
            case other:
                raise AssertionError(other)

    def decide(self, front: ProposalView, text: str = "") -> None:
        self.discussed = None
        self.policy.lock(front)
        if front.proposal_id in self.pending and self.stamp % 5 == 0:
            # The engine refuses it: the proposal is open again, and what was written comes back.
            self.policy.unlock(front)
            self.prompt = text + self.prompt
            self.drawn_since = self.clock.monotonic()
            return
        self.deliveries.append(text)
        self.pending.pop(front.proposal_id, None)

    @invariant()
    def a_discussion_is_about_what_is_in_front(self) -> None:
        about = self.policy.discussing
        if about is not None:
            assert about.session == self.header
        else:
            self.discussed = None

    @invariant()
    def no_draft_is_lost_or_sent_twice(self) -> None:
        """Each word that was typed is in the prompt, on its way, or was sent once; in the order of typing."""
        places = ["".join(self.deliveries), *(press.text for press in self.pressed), self.prompt]
        found = [int(number) for number in re.findall(r"w(\d+);", "".join(places))]
        assert sorted(found) == list(range(1, self.words + 1))

    @invariant()
    def the_header_names_the_session_of_what_is_in_front(self) -> None:
        if self.drawn is not None:
            assert self.drawn.session == self.header
            assert self.policy.session == self.header


@pytest.mark.search
def test_no_sequence_of_keys_decides_the_unseen_or_loses_words() -> None:
    """It comes to every step: it would prove nothing about an approval if no run ever came to one."""
    Keys.reached.clear()
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        Keys,
        settings=settings(max_examples=examples(60), stateful_step_count=50, deadline=None),
    )
    assert set(get_args(Step)) - Keys.reached == set()
    assert Keys.most_approved > 1
