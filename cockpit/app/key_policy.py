"""Enter and Escape are safe: the meaning of the two keys at this moment.

A proposal is armed once it has been visible for half a second and no key was pressed for half a
second. Enter approves the proposal that was armed when the key went down, with the digest of the text
that was drawn. This module draws and decides nothing: a key gives a :data:`Step`, which the screen
carries out. Specified in ``docs/reference/screen.md``.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from widgets.views import ProposalView

ARM_S = 0.5
"""Seconds of being visible, and of no key, before a proposal can be decided."""

_LOOK_FIRST = "look first: keys work in a moment"


class Approve(msgspec.Struct, frozen=True):
    """Approve the proposal as it was drawn."""

    proposal: ProposalView


class AskSecondKey(msgspec.Struct, frozen=True):
    """The first of two keys was pressed."""

    proposal: ProposalView


class Discuss(msgspec.Struct, frozen=True):
    """End this revision of the proposal; ``text`` may be empty."""

    proposal: ProposalView
    text: str = ""


class Refuse(msgspec.Struct, frozen=True):
    """Answer a permission with no; ``text`` is why, or empty."""

    proposal: ProposalView
    text: str = ""


class Send(msgspec.Struct, frozen=True):
    """Send a message; ``session`` is empty for the followed one."""

    text: str
    session: str = ""


class LeaveMode(msgspec.Struct, frozen=True):
    """Leave the mode that was asking for a key or for text."""


class DoNothing(msgspec.Struct, frozen=True):
    """Do nothing; ``reason`` tells the user why, or is empty."""

    reason: str = ""


Step = Approve | AskSecondKey | Discuss | Refuse | Send | LeaveMode | DoNothing


class KeyPolicy:
    """The state behind Enter and Escape. ``monotonic`` gives seconds."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._now = monotonic
        self.front: ProposalView | None = None
        """The proposal that is visible."""
        self.second: ProposalView | None = None
        """The proposal that waits for its second key."""
        self.discussing: ProposalView | None = None
        """The proposal whose discussion the prompt asks for."""
        self._visible_since = 0.0
        self._last_key = float("-inf")
        self._pressed: ProposalView | None = None
        self._in_decision: set[str] = set()

    def note_drawn(self, front: ProposalView | None) -> None:
        """Note the proposal that is on the screen now; None when no proposal is visible."""
        if _is_same(front, self.front) and self._visible_since != float("inf"):
            self.front = front
            return
        self.front = front
        self._visible_since = self._now()
        self._pressed = None
        if not _is_same(front, self.second):
            self.second = None

    def note_covered(self) -> None:
        """Note that a dialog covers the proposal: the user has to see it again."""
        self._visible_since = float("inf")
        self._pressed = self.second = None

    @property
    def open(self) -> ProposalView | None:
        """The visible proposal, unless its decision is in progress."""
        front = self.front
        return None if front is None or front.proposal_id in self._in_decision else front

    @property
    def is_seen(self) -> bool:
        """True when the open proposal has been visible for :data:`ARM_S`."""
        return self.open is not None and self._now() - self._visible_since >= ARM_S

    @property
    def is_armed(self) -> bool:
        """True when Enter and Escape decide the open proposal."""
        return self._is_armed_at(self._now())

    def _is_armed_at(self, moment: float) -> bool:
        since = max(self._visible_since, self._last_key)
        return self.open is not None and moment - since >= ARM_S

    def note_key(self, key: str, waited_s: float = 0.0) -> None:
        """Note that a key went down ``waited_s`` seconds ago; called before any widget handles it.

        On a busy machine a key waits until the screen has time for it, and another proposal may stand in
        front by then. What counts is what was to be seen when the key went down.
        """
        down = self._now() - waited_s
        if key in ("enter", "escape"):
            self._pressed = self.open if self._is_armed_at(down) else None
        self._last_key = max(self._last_key, down)

    def lock(self, proposal: ProposalView) -> None:
        """Note that the decision of a proposal is in progress: it is not decided twice."""
        self._in_decision.add(proposal.proposal_id)
        self.second = None

    def unlock(self, proposal: ProposalView) -> None:
        """Open the proposal again: its decision was refused."""
        self._in_decision.discard(proposal.proposal_id)
        self._visible_since = self._now()

    def handle_enter(self, text: str, *, starts_session: bool = False) -> Step:
        """Return the meaning of Enter with ``text`` in the prompt.

        ``starts_session``: no session is followed, so text starts a new one.
        """
        pressed, self._pressed = self._pressed, None
        self.second = None
        if self.discussing is not None and self.discussing.kind == "permission":
            about, self.discussing = self.discussing, None
            return Refuse(about, text)
        if text:
            if self.discussing is not None:
                about, self.discussing = self.discussing, None
                # What an agent did waits until there are words; other proposals are put aside already.
                return Discuss(about, text) if about.agent else Send(text, about.session)
            front = None if starts_session else self.open
            # A proposal without a session has no agent that could answer.
            has_reader = front is not None and self.is_seen and bool(front.session)
            if front is not None and has_reader and front.kind == "permission":
                return Refuse(front, text)
            return Discuss(front, text) if front is not None and has_reader else Send(text)
        if self.discussing is not None:
            return DoNothing("type your reply, or press esc")
        if pressed is None:
            return DoNothing(_LOOK_FIRST if self.open is not None else "")
        if pressed.second_key:
            self.second = pressed
            return AskSecondKey(pressed)
        return Approve(pressed)

    def handle_second_key(self, key: str) -> Step | None:
        """Return the meaning of a key while a second key is awaited; None when none is.

        ``y`` approves. Any other key withdraws the question and (except Escape) keeps its usual meaning.
        """
        proposal, self.second = self.second, None
        if proposal is None:
            return None
        if key == "y" and _is_same(proposal, self.open):
            return Approve(proposal)
        return LeaveMode()

    def handle_escape(self, text: str) -> Step:
        """Return the meaning of Escape with ``text`` in the prompt."""
        pressed, self._pressed = self._pressed, None
        if self.discussing is not None:
            about, self.discussing = self.discussing, None
            # The agent waits for its answer: words that were begun can still be left, none are a plain no.
            return Refuse(about) if about.kind == "permission" and not text else LeaveMode()
        if text or self.open is None:
            return DoNothing()
        if pressed is None:
            return DoNothing(_LOOK_FIRST)
        return Discuss(pressed)


def _is_same(first: ProposalView | None, second: ProposalView | None) -> bool:
    """Return True for the same revision with the same content, whatever its age."""
    if first is None or second is None:
        return first is second
    return (first.proposal_id, first.digest) == (second.proposal_id, second.digest)
