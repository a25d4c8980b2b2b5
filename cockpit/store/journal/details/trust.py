"""Details of trust rules: offered, accepted, used, suspended and revoked."""

from __future__ import annotations

from cockpit.store.journal.details.detail import Detail, Part


class ShapeOfRule(Part, frozen=True, kw_only=True):
    """The requests that a rule covers."""

    asker: str
    """The external agent; empty for the built-in agent."""
    task_type: str
    """The task type of the sessions that it counts in."""
    kind: str
    """``context``, or the type of an action or permission."""
    words: tuple[str, ...]
    """Source and place, or the words of a command."""


class EvidencePart(Part, frozen=True, kw_only=True):
    """One decision that a rule was offered on."""

    proposal_id: str
    """The proposal that the user approved."""
    session_id: str
    """Its session."""
    decided_at: str
    """When."""


class OfRule(Detail, frozen=True, kw_only=True):
    """A trust rule."""

    rule_id: str
    """The rule's id: ``t-`` for a learned one, ``r-`` for one of ``permissions.toml``."""
    says: str
    """The requests that it covers, in words."""
    task_type: str
    """The task type that it counts in; empty for any."""


class TrustChanged(OfRule, frozen=True, kw_only=True):
    """A rule was offered, accepted, suspended or revoked."""

    status: str
    """``offered``: the user's decisions amount to it; ``accepted`` by the user; ``suspended``: it covers
    nothing until the user accepts it again; ``revoked``: they ended it, or declined its offer."""
    effect: str
    """``pass``: it lets requests pass; ``card``: it shows a short card."""
    approvals: int = 0
    """Decisions that an offer counts."""
    sessions: int = 0
    """Sessions that they were made in."""
    shape: ShapeOfRule | None = None
    """The requests that an accepted rule covers."""
    risk: str = ""
    """The highest risk that an accepted rule covers."""
    expires_at: str | None = None
    """When an accepted rule ends; None: never."""
    evidence: tuple[EvidencePart, ...] = ()
    """The decisions that the user was shown when they accepted."""
    why: str = ""
    """The pushback that suspended it, or the user's reason; empty without one."""
    proposal_id: str = ""
    """The proposal that the user pushed back on; empty where they ended it themselves."""


class TrustUsed(OfRule, frozen=True, kw_only=True):
    """A rule let a request pass, or showed it as a short card."""

    effect: str
    """``pass`` or ``card``."""
    proposal_id: str
    """The proposal that passed."""
    what: str
    """The request that passed, in words."""
    uses: int
    """How often the rule was used, with this time."""
