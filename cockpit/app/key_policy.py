"""Enter and Escape are safe: the meaning of the two keys at this moment.

A proposal is armed once all of it was on the screen, it has been visible for half a second and no key was
pressed for half a second. Enter approves the proposal that was armed when the key went down, with the digest
of the text that was drawn; before all was on the screen it reads on. Proposals that are alike are drawn as
one, and approved as one; words answer the first of them. What is followed, what is in front and
where words go is one session: the one that was drawn when the key went down. This module draws and decides
nothing: a key gives a :data:`Step`, which the screen carries out. Specified in ``docs/reference/screen.md``.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from widgets.views import ProposalView

ARM_S = 0.5
"""Seconds of being visible, and of no key, before a proposal can be decided."""

_PRESSES_MOST = 64
_YES = frozenset(
    {
        *("looks good", "lgtm", "sounds good", "approve", "approved", "yes", "y", "ok", "okay"),
        *("go ahead", "go on", "do it"),
    }
)
"""Words that mean Enter: sent to the agent, they would end what they agree to."""
_YES_IS_ENTER = "words approve nothing: ^u clears them, then ⏎ approves"
_LOOK_FIRST = "look first: keys work in a moment"
_MOVED = "another session came to the front: press ⏎ again"


class Approve(msgspec.Struct, frozen=True):
    """Approve the proposal as it was drawn, with those that are alike."""

    proposal: ProposalView


class AskSecondKey(msgspec.Struct, frozen=True):
    """The first of two keys was pressed."""

    proposal: ProposalView


class ReadOn(msgspec.Struct, frozen=True):
    """Scroll to what was not on the screen yet."""


class OpenDiscussion(msgspec.Struct, frozen=True):
    """Ask for words about the proposal, which goes on waiting."""

    proposal: ProposalView


class Discuss(msgspec.Struct, frozen=True):
    """End this revision of the proposal with words; without, put aside what no session waits for."""

    proposal: ProposalView
    text: str = ""


class Refuse(msgspec.Struct, frozen=True):
    """Answer a permission with no; ``text`` is why, or empty."""

    proposal: ProposalView
    text: str = ""


class Send(msgspec.Struct, frozen=True):
    """Send a message to a session; with an empty ``session`` it starts one."""

    text: str
    session: str = ""


class LeaveMode(msgspec.Struct, frozen=True):
    """Leave the mode that was asking for a key or for text."""


class DoNothing(msgspec.Struct, frozen=True):
    """Do nothing; ``reason`` tells the user why, or is empty. Text that was entered stays in the prompt."""

    reason: str = ""


Step = (
    Approve
    | AskSecondKey
    | ReadOn
    | OpenDiscussion
    | Discuss
    | Refuse
    | Send
    | LeaveMode
    | DoNothing
)


class _Press(msgspec.Struct, frozen=True):
    """What stood on the screen as a key went down."""

    session: str
    armed: ProposalView | None = None
    seen: ProposalView | None = None
    """The proposal that had been visible for :data:`ARM_S`, read or not."""
    waited: bool = False
    """Whether also no key had been pressed for :data:`ARM_S`."""
    discussing: ProposalView | None = None


class KeyPolicy:
    """The state behind Enter and Escape, first in ``session``. ``monotonic`` gives seconds."""

    def __init__(self, monotonic: Callable[[], float], session: str = "") -> None:
        self._now = monotonic
        self.front: ProposalView | None = None
        """The proposal that is visible."""
        self.session = session
        """The followed session as it is drawn: the header names it. Empty for none."""
        self.is_read = False
        """True once every line of the visible proposal was on the screen."""
        self.second: ProposalView | None = None
        """The proposal that waits for its second key."""
        self.discussing: ProposalView | None = None
        """The proposal whose discussion the prompt asks for."""
        self._visible_since = self._read_since = 0.0
        self._last_key = self._session_since = float("-inf")
        self._presses: dict[float, _Press] = {}
        """What stood on the screen as each of the last keys went down, by the stamp of the key."""
        self._last_stamp = 0.0
        self._in_decision: set[str] = set()

    # What is on the screen

    def note_session(self, session: str, waiting: ProposalView | None) -> None:
        """Note the session that is drawn, and its proposal in front, visible or not.

        A discussion ends with what it was about: its words stay in the prompt.
        """
        if session != self.session:
            self.session, self._session_since = session, self._now()
        if self.discussing is not None and not _is_same(self.discussing, waiting):
            self.discussing = None

    def note_drawn(self, front: ProposalView | None) -> None:
        """Note the proposal that is on the screen now; None when no proposal is visible."""
        if _is_same(front, self.front) and self._visible_since != float("inf"):
            self.front = front
            return
        if not _is_same(front, self.front):
            self.is_read = False
        self.front = front
        self._visible_since = self._now()
        if not _is_same(front, self.second):
            self.second = None

    def note_read(self, drawn: str, is_whole: bool) -> bool:
        """Note whether every line of what is ``drawn`` was on the screen; True for news."""
        is_read = is_whole and self.front is not None and drawn == self.front.drawn
        if is_read == self.is_read:
            return False
        self.is_read, self._read_since = is_read, self._now()
        if not is_read:
            self.second = None
        return True

    def note_covered(self) -> None:
        """Note that a dialog covers the proposal: the user has to see it again."""
        self._visible_since = float("inf")
        self._presses.clear()
        self.second = None

    @property
    def open(self) -> ProposalView | None:
        """The visible proposal, unless its decision or that of one alike is in progress."""
        front = self.front
        together = front.together if front is not None else ()
        is_in_decision = any(each.proposal_id in self._in_decision for each in together)
        return None if is_in_decision else front

    @property
    def is_seen(self) -> bool:
        """True when the open proposal has been visible for :data:`ARM_S`."""
        return self._is_seen_at(self._now())

    @property
    def is_armed(self) -> bool:
        """True when Enter approves the open proposal."""
        return self._is_armed_at(self._now())

    def _is_seen_at(self, moment: float) -> bool:
        return self.open is not None and moment - self._visible_since >= ARM_S

    def _is_still_at(self, moment: float) -> bool:
        return self._is_seen_at(moment) and moment - self._last_key >= ARM_S

    def _is_armed_at(self, moment: float) -> bool:
        return self.is_read and self._is_still_at(moment) and moment - self._read_since >= ARM_S

    # Keys

    def note_key(self, waited_s: float = 0.0, stamp: float = 0.0) -> None:
        """Note that a key went down ``waited_s`` seconds ago; called before any widget handles it.

        ``stamp`` tells the presses of keys apart: several may have gone down before the first is handled.

        On a busy machine a key waits until the screen has time for it, and another proposal may stand in
        front by then. What counts is what was to be seen when the key went down.
        """
        down = self._now() - waited_s
        self._presses.pop(stamp, None)
        if down >= self._session_since:
            self._presses[stamp] = _Press(
                self.session,
                armed=self.open if self._is_armed_at(down) else None,
                seen=self.open if self._is_seen_at(down) else None,
                waited=self._is_still_at(down),
                discussing=self.discussing,
            )
        while len(self._presses) > _PRESSES_MOST:
            self._presses.pop(next(iter(self._presses)))
        self._last_key = max(self._last_key, down)
        self._last_stamp = stamp

    def take_armed(self) -> ProposalView | None:
        """Return the proposal that was armed as the last key went down, and is still there; once."""
        press = self._presses.pop(self._last_stamp, None)
        armed = press.armed if press is not None else None
        return armed if armed is not None and _is_same(armed, self.open) else None

    def lock(self, proposal: ProposalView) -> None:
        """Note that the decision of a proposal is in progress: it is not decided twice."""
        self._in_decision.add(proposal.proposal_id)
        self.second = None
        if self.discussing is not None and self.discussing.proposal_id == proposal.proposal_id:
            self.discussing = None

    def unlock(self, proposal: ProposalView) -> None:
        """Open the proposal again: its decision was refused."""
        self._in_decision.discard(proposal.proposal_id)
        self._visible_since = self._now()

    def handle_enter(
        self, text: str, *, is_command: bool = False, stamp: float | None = None
    ) -> Step:
        """Return the meaning of Enter with ``text`` in the prompt.

        ``stamp`` is that of its press, by default of the last key. ``is_command``: the text is for the screen
        itself, and answers no proposal.
        """
        press = self._presses.pop(self._last_stamp if stamp is None else stamp, None)
        self.second = None
        if press is None or press.session != self.session:
            return DoNothing(_MOVED if text else _LOOK_FIRST if self.open is not None else "")
        if text:
            return self._handle_text(text, press, is_command=is_command)
        about = self.discussing
        if about is not None:
            if about.kind == "permission" and _is_same(about, press.discussing):
                self.discussing = None
                return Refuse(about)
            return DoNothing("type your reply; esc takes the discussion back")
        front = self.open
        if front is not None and not self.is_read:
            return ReadOn()
        if press.armed is None or not _is_same(press.armed, front):
            return DoNothing(_LOOK_FIRST if front is not None else "")
        if press.armed.second_key:
            self.second = press.armed
            return AskSecondKey(press.armed)
        return Approve(press.armed)

    def _handle_text(self, text: str, press: _Press, *, is_command: bool) -> Step:
        if is_command:
            return Send(text, press.session)
        if press.discussing is not None and not _is_same(press.discussing, self.discussing):
            return DoNothing("what you discuss was decided meanwhile: ⏎ again sends your words")
        # A proposal without a session has no agent that could answer.
        about = self.discussing or (press.seen if _is_same(press.seen, self.open) else None)
        if about is None or not about.session or about.session != press.session:
            return Send(text, press.session)
        if self.discussing is None and text.strip().rstrip(".!").lower() in _YES:
            return DoNothing(_YES_IS_ENTER)
        self.discussing = None
        return Refuse(about, text) if about.kind == "permission" else Discuss(about, text)

    def handle_second_key(self, key: str) -> Step | None:
        """Return the meaning of a key while a second key is awaited; None when none is.

        ``y`` approves. Any other key withdraws the question and (except Escape) keeps its usual meaning.
        """
        proposal, self.second = self.second, None
        if proposal is None:
            return None
        if key == "y" and self.is_read and _is_same(proposal, self.open):
            return Approve(proposal)
        return LeaveMode()

    def handle_escape(self, text: str, *, stamp: float | None = None) -> Step:
        """Return the meaning of Escape with ``text`` in the prompt, pressed at ``stamp``."""
        press = self._presses.pop(self._last_stamp if stamp is None else stamp, None)
        if self.discussing is not None:
            self.discussing = None
            return LeaveMode()
        front = self.open
        if text or front is None:
            return DoNothing()
        if press is None or not press.waited or not _is_same(press.seen, front):
            return DoNothing(_LOOK_FIRST)
        if not front.session:
            return Discuss(front) if press.armed is not None else DoNothing(_LOOK_FIRST)
        self.discussing = front
        return OpenDiscussion(front)


def _is_same(first: ProposalView | None, second: ProposalView | None) -> bool:
    """Return True for the same revisions with the same content, whatever their age."""
    if first is None or second is None:
        return first is second
    return first.drawn == second.drawn
