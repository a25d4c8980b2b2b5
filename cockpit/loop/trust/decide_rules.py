"""Accepting, suspending and revoking rules: for the user alone, at a terminal or on cockpit's screen.

An accepted rule counts from the journal row of its acceptance on. Agents, services and programs decide
nothing here, whatever they hold. See ``docs/reference/trust.md``, accepting.
"""

from __future__ import annotations

import sqlite3
from datetime import timedelta

from cockpit.access import user_presence
from cockpit.access.principals import Caller
from cockpit.access.token_scopes import NotAllowed
from cockpit.core.clock import Clock, format_time, parse_time
from cockpit.core.errors import Altered, CockpitError, NotFound
from cockpit.learn.trust.weigh_evidence import Evidence
from cockpit.loop.decisions.decide_proposal import find_holder
from cockpit.loop.permissions import permission_rules as file_rules
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.loop.trust.learn_decision import find_evidence, oldest_that_counts
from cockpit.loop.trust.request_parts import list_parts
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import proposals, sessions
from cockpit.store.trust import trust_decisions, trust_rules
from cockpit.store.trust.shape import Shape
from cockpit.store.trust.trust_decisions import TrustDecision
from cockpit.store.trust.trust_rules import FILE, Rule


class NoRule(CockpitError):
    """The rule cannot be accepted; the message says why."""

    code = "trust_rule"


def require_the_user(decider: Caller, activity: str) -> None:
    """Raise ``NotAllowed`` unless ``decider`` is the user, at a terminal that no agent has."""
    if decider.kind != "person":
        raise NotAllowed(f"{decider.namespace} may not do this: {activity} is for the user alone.")
    user_presence.require_user(decider, activity)


def accept_rule(tx: Tx, settings: RuntimeSettings, rule_id: str, decider: Caller) -> Rule:
    """Accept an offered rule, or begin one again that was suspended, revoked or has expired.

    Raises ``NotAllowed``, ``NotFound``, and :class:`NoRule` where the journal does not bear out the evidence.
    """
    require_the_user(decider, "accepting a trust rule")
    rule = trust_rules.find(tx.connection, rule_id)
    now = trust_rules.latest_moment(tx.connection, tx.now())
    if rule is not None and rule.status_on(now) == "active":
        raise NoRule(f"Rule {rule_id} is active already.")
    if rule is not None and rule.origin == FILE:
        return trust_rules.accept(
            tx,
            rule.shape,
            risk=rule.risk,
            expires_at=None,
            evidence=(),
            rule_id=rule_id,
            origin=FILE,
        )
    evidence = find_offer(tx, settings, rule_id)
    if evidence is not None:
        shape, risk, counted = evidence.shape, evidence.risk, evidence.decisions
    elif rule is not None and rule.accepted_at is not None:
        shape, risk, counted = rule.shape, rule.risk, ()
    else:
        raise NotFound(
            f"There is no offer {rule_id} now; `cockpit trust rules --offers` lists the offers."
        )
    ends = parse_time(now) + timedelta(days=settings.trust.expires_days)
    return trust_rules.accept(tx, shape, risk=risk, expires_at=format_time(ends), evidence=counted)


def decide_rule(tx: Tx, settings: RuntimeSettings, verb: str, rule_id: str) -> Rule:
    """Accept, suspend or revoke a rule as the caller of this process; ``verb`` is one of these.

    Raises what the function of that name raises.
    """
    decider = find_holder(tx, settings)
    if verb == "accept":
        return accept_rule(tx, settings, rule_id, decider)
    if verb == "suspend":
        return suspend_rule(tx, rule_id, decider)
    return revoke_rule(tx, settings, rule_id, decider)


def suspend_rule(tx: Tx, rule_id: str, decider: Caller, why: str = "") -> Rule:
    """Suspend a rule: it covers nothing until it is accepted again. Raises ``NotAllowed``, ``NotFound``."""
    return _end(tx, rule_id, "suspended", decider, why or "you suspended it")


def revoke_rule(
    tx: Tx, settings: RuntimeSettings, rule_id: str, decider: Caller, why: str = ""
) -> Rule:
    """Revoke a rule, or decline an offer: what was decided so far no longer counts for it.

    A rule of ``permissions.toml`` is removed from there. Raises ``NotAllowed``, ``NotFound`` and
    ``RuleRefused``.
    """
    require_no_agent(decider, "revoking a trust rule")
    if rule_id.startswith("r-"):
        removed = file_rules.remove_rule(settings.user_dir, rule_id)
        return trust_rules.end(
            tx, removed.as_shape(), "revoked", why=why, rule_id=rule_id, origin=FILE
        )
    if trust_rules.find(tx.connection, rule_id) is None:
        offer = find_offer(tx, settings, rule_id)
        if offer is None:
            raise NotFound(f"There is no rule or offer {rule_id}; see `cockpit trust rules`.")
        return trust_rules.end(tx, offer.shape, "revoked", why=why or "you declined the offer")
    return _end(tx, rule_id, "revoked", decider, why or "you revoked it")


def require_no_agent(decider: Caller, activity: str) -> None:
    """Raise ``NotAllowed`` for an agent or a service; a script of the user may end what they allowed."""
    if decider.kind != "person":
        raise NotAllowed(f"{decider.namespace} may not do this: {activity} is for the user alone.")
    user_presence.require_no_agent(activity)


def list_offers(
    connection: sqlite3.Connection, clock: Clock, settings: RuntimeSettings
) -> list[Evidence]:
    """Return the evidence of each rule that can be accepted now, decided last first."""
    since = oldest_that_counts(clock, settings.trust)
    offers = []
    for shape_digest in trust_decisions.select_frequent(
        connection, settings.trust.approvals, since
    ):
        evidence = _weigh_shape(connection, clock, settings, shape_digest)
        if evidence is not None:
            offers.append(evidence)
    return offers


def find_offer(tx: Tx, settings: RuntimeSettings, rule_id: str) -> Evidence | None:
    """Return the offer with the id that its rule would have, its evidence as the journal bears it out."""
    offer = next(
        (
            each
            for each in list_offers(tx.connection, tx.clock, settings)
            if each.shape.rule_id == rule_id
        ),
        None,
    )
    if offer is None:
        return None
    for each in offer.decisions:
        _require_recorded(tx, offer.shape, each)
    return offer


def _weigh_shape(
    connection: sqlite3.Connection, clock: Clock, settings: RuntimeSettings, shape_digest: str
) -> Evidence | None:
    decisions = trust_decisions.select_of_shape(connection, shape_digest)
    shape = decisions[-1].shape if decisions else None
    if shape is None or shape.digest != shape_digest:
        return None
    rule = trust_rules.find(connection, shape.rule_id)
    if rule is not None and rule.status_on(format_time(clock.now())) == "active":
        return None
    evidence = find_evidence(connection, clock, settings.trust, shape)
    return evidence if evidence.is_enough else None


def _require_recorded(tx: Tx, shape: Shape, decision: TrustDecision) -> None:
    """Raise :class:`NoRule` unless the journal says that the user approved a request of this shape."""
    try:
        proposal = proposals.load_approved(tx.connection, decision.proposal_id)
        session = sessions.load(tx.connection, proposal.session_id)
        shapes = [part.shape for part in list_parts(proposal, session)]
    except (Altered, NotFound) as error:
        raise NoRule(f"The evidence of {shape.rule_id} cannot be used: {error}") from error
    if proposal.decided_by != "person" or shape not in shapes:
        raise NoRule(
            f"The evidence of {shape.rule_id} cannot be used: {decision.proposal_id} was not a request like"
            " this that you approved. `cockpit debug journal` lists what was changed in the store."
        )


def _end(tx: Tx, rule_id: str, status: str, decider: Caller, why: str) -> Rule:
    require_no_agent(decider, f"{'suspending' if status == 'suspended' else 'revoking'} a rule")
    rule = trust_rules.load(tx.connection, rule_id)
    return trust_rules.end(tx, rule.shape, status, why=why, rule_id=rule_id, origin=rule.origin)
