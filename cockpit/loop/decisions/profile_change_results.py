"""How a profile change stands and how it ended: recorded in the journal, told to who asked.

Source: RFC-003 §14.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from cockpit.access.principals import MAIN, Caller
from cockpit.core.errors import AlreadyDecided, CockpitError, Stale
from cockpit.core.secrets import mask
from cockpit.orient.profile_changes.guard import CODES, Refusal
from cockpit.store.context import profile_changes
from cockpit.store.context.profile_changes import ChangeProposal
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.profiles import ProfileChange, ProfileRejected
from cockpit.store.sessions.proposals import Proposal

GUARD = "guard"


class ChangeNotMade(CockpitError):
    """A change that was refused; ``code`` is the gravest of the ``refusals``' codes."""

    def __init__(self, refusals: Sequence[Refusal], proposal_id: str = "") -> None:
        words = " ".join(dict.fromkeys(refusal.message for refusal in refusals))
        super().__init__(f"{refusals[0].code}: {words}", code=refusals[0].code)
        self.refusals = tuple(refusals)
        self.proposal_id = proposal_id


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a change stands. ``version`` is the one it became; ``refusals`` the guard's of this call."""

    proposal_id: str
    status: str
    version: int | None = None
    refusals: tuple[Refusal, ...] = ()

    def granted(self) -> Outcome:
        """The outcome itself. Raises :class:`ChangeNotMade` when the guard refused, ``Stale`` when the
        deadline had passed."""
        if self.refusals:
            raise ChangeNotMade(self.refusals, self.proposal_id)
        if self.status == "expired":
            raise Stale(f"The deadline of proposal {self.proposal_id} has passed; it expired.")
        return self


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a change is proposed: in a wave of a session, or (all empty) outside any."""

    session_id: str = ""
    wave_id: str = ""
    task_id: str | None = None
    policy: str = "ask"


def refused(tx: Tx, kept: ChangeProposal, refusals: Sequence[Refusal], origin: Origin) -> Outcome:
    """Reject a change in the guard's name, with all of its reasons."""
    words = " ".join(refusal.message for refusal in refusals)
    codes = tuple(dict.fromkeys(refusal.code for refusal in refusals))
    ended = rejected(tx, kept, origin, code=codes[0], words=words, by=GUARD, codes=codes)
    return replace(ended, refusals=tuple(refusals))


def rejected(
    tx: Tx,
    kept: ChangeProposal,
    origin: Origin,
    *,
    code: str,
    words: str,
    by: str,
    codes: Sequence[str] = (),
) -> Outcome:
    """Reject a change: its row and the journal."""
    words = mask(words)
    profile_changes.decide(tx, kept.proposal_id, "rejected", code=code, reason=words)
    record(
        tx,
        ProfileRejected,
        kept,
        origin,
        actor=by,
        result="refused",
        error_code=code,
        codes=tuple(codes or (code,)),
        message=words,
    )
    return Outcome(kept.proposal_id, "rejected")


def kept_refusals(known: ChangeProposal) -> tuple[Refusal, ...]:
    """What the guard had against a change, as its row remembers it."""
    if known.status != "rejected" or known.rejection_code not in CODES:
        return ()
    return (Refusal(known.rejection_code, known.rejection_reason or ""),)


def record(
    tx: Tx,
    event: type[ProfileChange],
    kept: ChangeProposal,
    origin: Origin,
    *,
    actor: str = "engine",
    profile_version: int | None = None,
    result: str = "ok",
    error_code: str = "",
    **own: Any,
) -> None:
    """A row of the journal about a change; its version is the one that it starts from, until applied."""
    tx.journal(
        event(**profile_changes.detail(kept), **own),
        actor=actor,
        session_id=origin.session_id,
        wave_id=origin.wave_id,
        profile_id=kept.profile_id,
        profile_version=kept.base_version if profile_version is None else profile_version,
        result=result,
        error_code=error_code,
    )


def origin_of(shown: Proposal) -> Origin:
    """Where a proposal came from."""
    return Origin(shown.session_id, shown.wave_id, shown.task_id)


def actor_of(caller: Caller) -> str:
    """How decisions and rows name a caller: who sits at the terminal is the person."""
    return "person" if (caller.namespace, caller.cap_id) == (MAIN, "") else caller.namespace


def decided_already(kept: ChangeProposal) -> AlreadyDecided:
    """What to raise about a change that is not pending."""
    by = kept.approved_by or kept.rejection_code
    return AlreadyDecided(
        f"The profile change {kept.proposal_id} was {kept.status} already{f' ({by})' if by else ''}."
    )
