"""Deciding a proposal of any kind: who may, and what follows from it.

The person in command decides everything; a profile change may also be decided by whoever holds the
scope for it. Agents decide nothing. Source: RFC-003 §11.2; design of Act, approval semantics.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from cockpit.access.capability_tokens import caller
from cockpit.access.token_scopes import NotAllowed
from cockpit.loop.decisions import profile_change_service
from cockpit.loop.decisions.approved_effects import commissioned
from cockpit.loop.decisions.profile_change_results import Outcome
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import proposals

TOKEN = "COCKPIT_TOKEN"  # noqa: S105 - a variable's name
Ruling = Literal["approved", "rejected", "discussed"]


def rule(
    tx: Tx,
    settings: RuntimeSettings,
    proposal_id: str,
    verdict: Ruling,
    *,
    token: str | None = None,
    shown_digest: str | None = None,
    narrowed: Sequence[str] | None = None,
    reason: str = "",
) -> Outcome:
    """Decide a proposal as the holder of ``token`` (None: of the environment's, else the person).

    Raises ``TokenRefused``, ``NotAllowed``, ``NotFound``, ``AlreadyDecided``, ``Stale``, and what an
    action that cockpit carries out itself raises; then nothing changed. What the guard refused is in the
    outcome.
    """
    held = settings.environment.get(TOKEN, "") if token is None else token
    who = caller(tx.connection, held, tx.now())
    proposal = proposals.load(tx.connection, proposal_id)
    if proposal.kind == "profile":
        return profile_change_service.decide(
            tx,
            settings,
            proposal_id,
            verdict,
            who,
            shown_digest=shown_digest,
            reason=reason,
        )
    if who.kind != "person":
        raise NotAllowed(f"{who.namespace} may not decide this: only the person in command does.")
    commission = commissioned(settings.commissions, proposal) if verdict == "approved" else None
    decided = proposals.decide(
        tx,
        proposal_id,
        verdict,
        by="person",
        shown_digest=shown_digest,
        narrowed=narrowed,
        reason=reason,
    )
    if commission is not None:
        commission.carry_out(tx, decided, by="person")
    return Outcome(proposal_id, decided.status)
