"""Every rule by which something passes without asking, in one listing, wherever it is stored.

Learned rules are in the project's store, exact ones of external agents in the user's ``permissions.toml``,
and attention rules in profiles. See ``docs/reference/trust.md``, rules.
"""

from __future__ import annotations

import sqlite3

from msgspec import Struct
from msgspec.structs import replace

from cockpit.core.clock import Clock, format_time
from cockpit.core.text import pluralize
from cockpit.learn.trust.loop_state import LoopState, derive_state
from cockpit.learn.trust.weigh_evidence import Evidence
from cockpit.loop.permissions.permission_rules import RuleRefused, TrustRule, load_rules
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.loop.trust.decide_rules import list_offers
from cockpit.loop.trust.learn_decision import oldest_that_counts
from cockpit.store.context import profiles
from cockpit.store.context.profile_model import Profile
from cockpit.store.context.profile_model import Rule as AttentionRule
from cockpit.store.sessions import proposals
from cockpit.store.sessions.proposals import Proposal
from cockpit.store.trust import trust_decisions, trust_rules
from cockpit.store.trust.shape import LOOPS, Shape
from cockpit.store.trust.trust_rules import FILE, Rule

_STATUSES = ("offered", "active", "suspended", "expired", "revoked")


class EvidenceRow(Struct, frozen=True):
    """One decision that a rule stands on."""

    proposal_id: str
    session_id: str
    decided_at: str
    title: str
    """What was approved; empty where the store no longer has it."""


class ListedRule(Struct, frozen=True):
    """One rule, or the offer of one."""

    rule_id: str
    stored_in: str
    """``store``, ``permissions.toml`` or ``profile NAME``."""
    kind: str
    says: str
    """What it covers, in words."""
    status: str = "active"
    """``offered``, ``active``, ``suspended``, ``revoked`` or ``expired``."""
    effect: str = "pass"
    """``pass``: what it covers passes; ``card``: it is asked on a short card."""
    task_type: str = ""
    """Empty: in sessions of any type."""
    agent: str = ""
    """The external agent; empty for the built-in agent."""
    risk: str = ""
    """The highest risk that it covers; empty where that is not limited by the rule."""
    uses: int = 0
    last_used_at: str | None = None
    accepted_at: str | None = None
    expires_at: str | None = None
    project: str = ""
    """The project of a rule that is not stored with its project."""
    why: str = ""
    """Why it is suspended or revoked, or on how many decisions it is offered."""
    evidence: tuple[EvidenceRow, ...] = ()
    """The decisions that it stands on, oldest first, where the rule is shown alone."""


class RuleListing(Struct, frozen=True):
    """All rules and offers of a project, and what could not be read."""

    rules: tuple[ListedRule, ...]
    problems: tuple[str, ...] = ()


class TaskTypeState(Struct, frozen=True):
    """How far both inner loops of a task type have collapsed."""

    task_type: str
    orient: LoopState
    decide: LoopState


def list_rules(
    connection: sqlite3.Connection, clock: Clock, settings: RuntimeSettings
) -> RuleListing:
    """Return offers first, then rules in force, then what ended."""
    stored = {rule.rule_id: rule for rule in trust_rules.select_all(connection)}
    now = trust_rules.latest_moment(connection, format_time(clock.now()))
    rows = [_offered(evidence) for evidence in list_offers(connection, clock, settings)]
    offered = {row.rule_id for row in rows}
    learned = [
        _learned(rule, rule.status_on(now))
        for rule in stored.values()
        if rule.origin != FILE and rule.rule_id not in offered
    ]
    problems: tuple[str, ...] = ()
    exact: list[ListedRule] = []
    try:
        exact = [_exact(rule, stored.get(rule.rule_id)) for rule in load_rules(settings.user_dir)]
    except RuleRefused as error:
        problems = (str(error),)
    fetching = [
        _fetching(profile, rule)
        for profile in profiles.select_current(connection)
        for rule in profile.rules
        if rule.enabled and rule.fetch
    ]
    rules = sorted(
        (*rows, *learned, *exact, *fetching, *_of_settings(settings)),
        key=lambda each: _STATUSES.index(each.status),
    )
    return RuleListing(tuple(rules), problems)


def list_evidence(
    connection: sqlite3.Connection, clock: Clock, settings: RuntimeSettings, rule_id: str
) -> tuple[EvidenceRow, ...]:
    """Return the decisions that a rule was accepted on, or that its offer stands on, oldest first."""
    for offer in list_offers(connection, clock, settings):
        if offer.shape.rule_id == rule_id:
            counted = [
                (each.proposal_id, each.session_id, each.decided_at) for each in offer.decisions
            ]
            break
    else:
        counted = [
            (each.proposal_id, each.session_id, each.decided_at)
            for each in trust_rules.select_evidence(connection, rule_id)
        ]
    rows = []
    for proposal_id, session_id, decided_at in counted:
        proposal = proposals.find(connection, proposal_id)
        rows.append(EvidenceRow(proposal_id, session_id, decided_at, _what(proposal)))
    return tuple(rows)


def list_states(
    connection: sqlite3.Connection, clock: Clock, settings: RuntimeSettings
) -> tuple[TaskTypeState, ...]:
    """Return how far both inner loops of each task type have collapsed, by name."""
    since = oldest_that_counts(clock, settings.trust)
    now = trust_rules.latest_moment(connection, format_time(clock.now()))
    rules = [rule for rule in trust_rules.select_all(connection) if rule.origin != FILE]
    active = {rule.task_type for rule in rules if rule.status_on(now) == "active"}
    states = []
    for task_type in sorted({*trust_decisions.select_task_types(connection, since), *active}):
        decisions = trust_decisions.select_of_type(connection, task_type, since)
        of_type = [rule for rule in rules if rule.task_type == task_type]
        orient, decide = (
            derive_state(loop, decisions, of_type, now=now, sessions=settings.trust.sessions)
            for loop in LOOPS
        )
        states.append(TaskTypeState(task_type, orient, decide))
    return tuple(states)


def _what(proposal: Proposal | None) -> str:
    if proposal is None:
        return ""
    if proposal.kind != "context":
        return proposal.title
    kept = proposal.narrowed
    names = [str(item["item"]) for item in proposal.body["items"] if not item["refused"]]
    return " · ".join(name for name in names if kept is None or name in kept)


def _of_shape(shape: Shape, status: str, risk: str) -> ListedRule:
    return ListedRule(
        shape.rule_id,
        "store",
        shape.kind,
        shape.describe(),
        status,
        shape.effect,
        shape.task_type,
        shape.asker,
        risk,
    )


def _offered(evidence: Evidence) -> ListedRule:
    count = pluralize(len(evidence.decisions), "approval")
    spread = pluralize(evidence.sessions, "session")
    why = f"{count} in {spread}, none pushed back since"
    return replace(_of_shape(evidence.shape, "offered", evidence.risk), why=why)


def _learned(rule: Rule, status: str) -> ListedRule:
    return replace(
        _of_shape(rule.shape, status, rule.risk),
        uses=rule.uses,
        last_used_at=rule.last_used_at,
        accepted_at=rule.accepted_at,
        expires_at=rule.expires_at,
        why=rule.why,
    )


def _exact(rule: TrustRule, row: Rule | None) -> ListedRule:
    says = rule.as_shape().describe()
    listed = ListedRule(
        rule.rule_id, "permissions.toml", rule.kind, says, agent=rule.agent, project=rule.project
    )
    if row is None:
        return listed
    return replace(
        listed, status=row.status, uses=row.uses, last_used_at=row.last_used_at, why=row.why
    )


def _of_settings(settings: RuntimeSettings) -> list[ListedRule]:
    """Return the calls of MCP servers that the user's own settings allow."""
    return [
        ListedRule(
            f"mcp/{server.name}/{tool}",
            f"[mcp.{server.name}] allow",
            "mcp",
            f"call {tool} of the MCP server {server.name}",
        )
        for server in settings.mcp.values()
        for tool in server.allow
    ]


def _fetching(profile: Profile, rule: AttentionRule) -> ListedRule:
    return ListedRule(
        f"{profile.profile_id}/{rule.rule_id}",
        f"profile {profile.profile_id} v{profile.version}",
        "context",
        f"read {' · '.join(rule.fetch)}",
    )
