"""What passes without asking the user: by the session's policy, or by rules that cover it.

Deny rules and guards have refused before. The decision, the uses of the rules and their journal rows are one
transaction with the proposal. See ``docs/reference/trust.md``, coverage.
"""

from __future__ import annotations

from cockpit.loop.decisions.decide_proposal import decide_proposal
from cockpit.loop.permissions.permission_rules import TrustRule
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.loop.trust.find_covering_rules import RuleUse, count_uses, find_coverage
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import sessions
from cockpit.store.sessions.proposals import Proposal


def pass_without_asking(
    tx: Tx,
    settings: RuntimeSettings,
    proposal: Proposal,
    by_policy: str | None,
    *,
    exact: TrustRule | None = None,
) -> bool:
    """Approve a pending proposal where a policy or rules let it pass; returns whether they did.

    ``by_policy`` is the name in which the session's policy approves it, empty or None where it does not;
    ``exact`` the rule of ``permissions.toml`` that would allow exactly it. Raises ``Altered``.
    """
    if proposal.status != "pending":
        return False
    by = by_policy or ""
    uses: tuple[RuleUse, ...] = ()
    if not by:
        session = sessions.load(tx.connection, proposal.session_id)
        coverage = find_coverage(tx, settings, proposal, session, exact=exact)
        if coverage is None:
            return False
        by, uses = coverage.by, coverage.uses
    outcome = decide_proposal(
        tx,
        settings,
        proposal.proposal_id,
        "approved",
        by,
        shown_digest=proposal.shown_digest,
    )
    count_uses(tx, uses, proposal)
    return outcome.status == "approved"
