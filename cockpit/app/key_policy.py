"""Enter and Escape are safe: what the two keys mean at this moment.

A proposal is armed when it has been visible for half a second and no key was pressed for half a
second. What Enter approves is what was armed at the moment of the press, with the digest of what
was drawn. Nothing here draws or decides: a key gives a :data:`Step`, which the screen carries out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from widgets.views import ProposalView

ARM_S = 0.5
"""Seconds of being visible, and of no key, before a proposal can be decided."""


@dataclass(frozen=True, slots=True)
class Approve:
    proposal: ProposalView


@dataclass(frozen=True, slots=True)
class AskSecond:
    """The first of two keys was pressed."""

    proposal: ProposalView


@dataclass(frozen=True, slots=True)
class Discuss:
    """End this revision; ``words`` may be empty."""

    proposal: ProposalView
    words: str = ""


@dataclass(frozen=True, slots=True)
class Say:
    """Send words; ``session`` is empty for the one that is followed."""

    text: str
    session: str = ""


@dataclass(frozen=True, slots=True)
class Leave:
    """Leave the mode that was asking for something."""


@dataclass(frozen=True, slots=True)
class Nothing:
    """Nothing happens; ``why`` tells the person, or is empty."""

    why: str = ""


Step = Approve | AskSecond | Discuss | Say | Leave | Nothing


class Steering:
    """The state of the two keys. ``monotonic`` gives seconds."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._now = monotonic
        self.front: ProposalView | None = None
        self.second: ProposalView | None = None
        self.discussing: ProposalView | None = None
        self._since = 0.0
        self._last_key = float("-inf")
        self._pressed: ProposalView | None = None
        self._under_way: set[str] = set()

    def drawn(self, front: ProposalView | None) -> None:
        """``front`` is what stands on the screen now; None when no proposal is to be seen."""
        if _same(front, self.front) and self._since != float("inf"):
            self.front = front
            return
        self.front = front
        self._since = self._now()
        self._pressed = None
        if not _same(front, self.second):
            self.second = None

    def cover(self) -> None:
        """Something stands in front of the proposal: it has to be seen anew."""
        self._since = float("inf")
        self._pressed = self.second = None

    @property
    def open(self) -> ProposalView | None:
        """The visible proposal, unless its decision is under way."""
        front = self.front
        return None if front is None or front.proposal_id in self._under_way else front

    @property
    def seen(self) -> bool:
        """True when the open proposal has been visible long enough to be meant."""
        return self.open is not None and self._now() - self._since >= ARM_S

    @property
    def armed(self) -> bool:
        return self.seen and self._now() - self._last_key >= ARM_S

    def press(self, key: str) -> None:
        """A key goes down; called before anybody handles it."""
        if key in ("enter", "escape"):
            self._pressed = self.open if self.armed else None
        self._last_key = self._now()

    def begin(self, proposal: ProposalView) -> None:
        """Its decision is under way: it is not decided twice."""
        self._under_way.add(proposal.proposal_id)
        self.second = None

    def undo(self, proposal: ProposalView) -> None:
        """The decision was refused: the proposal is open again."""
        self._under_way.discard(proposal.proposal_id)
        self._since = self._now()

    def enter(self, text: str, *, beginning: bool = False) -> Step:
        """Enter was pressed with ``text`` in the prompt. ``beginning``: no session is followed, so
        that words are meant for a new one."""
        pressed, self._pressed = self._pressed, None
        self.second = None
        if text:
            if self.discussing is not None:
                about, self.discussing = self.discussing, None
                return Say(text, about.session)
            front = None if beginning else self.open
            # Behind one that belongs to no session nobody stands who could answer.
            talks = front is not None and self.seen and bool(front.session)
            return Discuss(front, text) if front is not None and talks else Say(text)
        if self.discussing is not None:
            return Nothing("say what is on your mind, or esc")
        if pressed is None:
            return Nothing("look first: keys work in a moment" if self.open is not None else "")
        if pressed.second_key:
            self.second = pressed
            return AskSecond(pressed)
        return Approve(pressed)

    def second_key(self, key: str) -> Step | None:
        """While a second key is awaited: ``y`` approves, any other key takes the question back
        and (except Escape) is handled as usual. None: nothing was awaited."""
        asked, self.second = self.second, None
        if asked is None:
            return None
        if key == "y" and _same(asked, self.open):
            return Approve(asked)
        return Leave()

    def escape(self, text: str) -> Step:
        """Escape was pressed with ``text`` in the prompt."""
        pressed, self._pressed = self._pressed, None
        if self.discussing is not None:
            self.discussing = None
            return Leave()
        if text or self.open is None:
            return Nothing()
        if pressed is None:
            return Nothing("look first: keys work in a moment")
        return Discuss(pressed)


def _same(one: ProposalView | None, other: ProposalView | None) -> bool:
    """True for the same revision with the same content, whatever its age."""
    if one is None or other is None:
        return one is other
    return (one.proposal_id, one.digest) == (other.proposal_id, other.digest)
