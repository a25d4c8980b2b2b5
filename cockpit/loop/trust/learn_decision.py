"""Learning from a decision, in its transaction: what it says about its shapes, and what it suspends.

Only the user's decisions are evidence. Those of rules are kept for the state of the inner loops, those of
policies not at all. See ``docs/reference/trust.md``, learning.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import timedelta

from cockpit.core.canonical_json import digest
from cockpit.core.clock import Clock, format_time
from cockpit.learn.trust.weigh_evidence import Evidence, Thresholds, weigh
from cockpit.loop.runtime_settings import TrustSettings
from cockpit.loop.trust.find_covering_rules import RuleUse
from cockpit.loop.trust.request_parts import KINDS, Asked, RequestPart, list_parts
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.trust import TrustChanged
from cockpit.store.sessions import sessions
from cockpit.store.sessions.proposals import EDITED, Proposal
from cockpit.store.sessions.sessions import Session
from cockpit.store.trust import trust_decisions, trust_rules
from cockpit.store.trust.shape import InnerLoop, Shape
from cockpit.store.trust.trust_decisions import TrustDecision

_PUSHBACKS = {"rejected": "rejected", "discussed": "discussed"}


def oldest_that_counts(clock: Clock, settings: TrustSettings) -> str:
    """Return since when decisions count: as long as a rule would last."""
    return format_time(clock.now() - timedelta(days=settings.expires_days))


def thresholds_of(settings: TrustSettings) -> Thresholds:
    """Return what it takes until a rule is offered."""
    return Thresholds(settings.approvals, settings.sessions)


def learn_decision(
    tx: Tx,
    settings: TrustSettings,
    proposal: Proposal,
    decision: str,
    by: str,
    *,
    narrowed: Sequence[str] | None = None,
    reason: str = "",
) -> None:
    """Record what was decided about a proposal; a pushback suspends the rules that would cover it."""
    if proposal.kind not in KINDS or not proposal.session_id:
        return
    if by != "person" and not by.startswith("trust:"):
        return
    session = sessions.load(tx.connection, proposal.session_id)
    parts = list_parts(proposal, session)
    if not parts:
        return
    decisions = [
        _decision(tx, proposal, session, part, _verdict(part, decision, narrowed, reason), by)
        for part in parts
    ]
    trust_decisions.record(tx, decisions, oldest=oldest_that_counts(tx.clock, settings))
    if by != "person":
        return
    for each in decisions:
        if each.shape is None:
            continue
        if each.is_pushback:
            _suspend(tx, each.shape, each)
        else:
            _offer(tx, settings, each.shape, proposal)
    if decision != "approved":
        _suspend_exact(tx, proposal, _verdict(parts[0], decision, narrowed, reason))


def record_passes(
    tx: Tx, settings: TrustSettings, request: Asked, session: Session, uses: Sequence[RuleUse]
) -> None:
    """Record that rules let parts of a request pass, for the state of the inner loops."""
    trust_decisions.record(
        tx,
        [
            TrustDecision(
                use.shape,
                request.proposal_id,
                digest(use.what),
                request.session_id,
                request.wave_id,
                session.task_type,
                use.shape.inner_loop,
                "approved",
                "rule",
                request.risk,
                tx.now(),
            )
            for use in uses
        ],
        oldest=oldest_that_counts(tx.clock, settings),
    )


def find_evidence(
    connection: sqlite3.Connection,
    clock: Clock,
    settings: TrustSettings,
    shape: Shape,
    *,
    but: str = "",
) -> Evidence:
    """Weigh what counts for a shape now, without the proposal ``but``."""
    since = oldest_that_counts(clock, settings)
    rule = trust_rules.find(connection, shape.rule_id)
    ended_at = rule.status_at if rule is not None and rule.status != "active" else ""
    decisions = [
        each
        for each in trust_decisions.select_of_shape(connection, shape.digest)
        if each.proposal_id != but
    ]
    return weigh(shape, decisions, thresholds_of(settings), since=since, after=ended_at)


def _verdict(part: RequestPart, decision: str, narrowed: Sequence[str] | None, reason: str) -> str:
    if decision == "approved":
        return "approved" if narrowed is None or part.text in narrowed else "narrowed"
    return "edited" if reason == EDITED else _PUSHBACKS.get(decision, "rejected")


def _decision(
    tx: Tx, proposal: Proposal, session: Session, part: RequestPart, verdict: str, by: str
) -> TrustDecision:
    body = proposal.body
    # A revision was asked for by the user's own words or edit: it is not a clean approval of the shape.
    is_revision = bool(proposal.revises or body.get("edited"))
    loop: InnerLoop = "orient" if proposal.kind == "context" else "decide"
    if part.shape is not None:
        loop = part.shape.inner_loop
    who = "rule" if by != "person" else "card" if body.get("card") else "person"
    return TrustDecision(
        None if is_revision and verdict == "approved" else part.shape,
        proposal.proposal_id,
        part.literal,
        proposal.session_id,
        proposal.wave_id,
        session.task_type,
        loop,
        verdict,
        who,
        proposal.risk,
        tx.now(),
    )


def _suspend(tx: Tx, shape: Shape, decision: TrustDecision) -> None:
    rule = trust_rules.find(tx.connection, shape.rule_id)
    if rule is None or rule.status != "active":
        return
    trust_rules.end(
        tx,
        shape,
        "suspended",
        why=f"you {decision.verdict} what it covers",
        proposal_id=decision.proposal_id,
        session_id=decision.session_id,
    )


def _suspend_exact(tx: Tx, proposal: Proposal, verdict: str) -> None:
    """Suspend the rule of ``permissions.toml`` that allows exactly this, if it was ever used."""
    from cockpit.loop.permissions.permission_rules import RuleRefused, read_rule

    try:
        exact = read_rule(proposal.body)
    except RuleRefused:
        return
    rule = trust_rules.find(tx.connection, exact.rule_id)
    if rule is None or rule.status != "active":
        return
    trust_rules.end(
        tx,
        exact.as_shape(),
        "suspended",
        why=f"you {verdict} what it covers",
        proposal_id=proposal.proposal_id,
        session_id=proposal.session_id,
        rule_id=exact.rule_id,
        origin=trust_rules.FILE,
    )


def _offer(tx: Tx, settings: TrustSettings, shape: Shape, proposal: Proposal) -> None:
    """Journal the offer of a rule where this very decision made the evidence enough."""
    rule = trust_rules.find(tx.connection, shape.rule_id)
    if rule is not None and rule.status_on(tx.now()) == "active":
        return
    now = find_evidence(tx.connection, tx.clock, settings, shape)
    if not now.is_enough:
        return
    before = find_evidence(tx.connection, tx.clock, settings, shape, but=proposal.proposal_id)
    if before.is_enough:
        return
    tx.journal(
        TrustChanged(
            rule_id=shape.rule_id,
            status="offered",
            says=shape.describe(),
            task_type=shape.task_type,
            effect=shape.effect,
            approvals=len(now.decisions),
            sessions=now.sessions,
        ),
        session_id=proposal.session_id,
        wave_id=proposal.wave_id,
    )
