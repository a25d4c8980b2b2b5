"""``cockpit trust rules`` and ``cockpit debug trust``: what passes without asking, and why."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click
from msgspec import Struct, to_builtins

from cockpit.cli_options import AS_JSON, examples
from cockpit.commands.collection import Collection, Listed
from cockpit.commands.confirm import YES, confirm
from cockpit.commands.open_project import (
    find_project,
    load_project_settings,
    open_store,
    require_records,
)
from cockpit.commands.terminal import say, show, show_json, show_list
from cockpit.core.errors import NotFound
from cockpit.loop.trust.list_rules import EvidenceRow, ListedRule

if TYPE_CHECKING:
    from cockpit.access.principals import Caller
    from cockpit.core.clock import Clock
    from cockpit.loop.runtime_settings import RuntimeSettings
    from cockpit.loop.trust.list_rules import RuleListing
    from cockpit.store.db.transaction import Tx
    from cockpit.store.trust.trust_rules import Rule

T = TypeVar("T")
_ENDED = ("revoked", "expired")


class ShownRule(Struct, frozen=True):
    """A rule or an offer, with its evidence."""

    rule: ListedRule
    evidence: tuple[EvidenceRow, ...] = ()


def _read_all(every: bool, offers: bool) -> Listed[ShownRule]:
    listing = _listing()
    return Listed(
        [
            ShownRule(rule)
            for rule in listing.rules
            if (rule.status == "offered" if offers else every or rule.status not in _ENDED)
        ],
        listing.problems,
    )


rules = Collection(
    "rules",
    short_help="List and decide trust rules.",
    help="""List and decide the rules by which requests pass without asking you.

    cockpit offers a rule after you have approved the same shape of request several times. Only you accept
    one, and one pushback suspends it. Sessions with the policy `trusted` or a wider one use learned rules.
    A rule is shown with its evidence.
    """,
    examples=(
        "cockpit trust rules",
        "cockpit trust rules t-1a2b3c4d5e",
        "cockpit trust rules accept t-1a2b3c4d5e",
    ),
    row="RULE",
    columns={
        "RULE": lambda row: row.rule.rule_id,
        "STATUS": lambda row: row.rule.status,
        "USES": lambda row: "–" if row.rule.status == "offered" else str(row.rule.uses),
        "TASK TYPE": lambda row: row.rule.task_type or "any",
        "AGENT": lambda row: row.rule.agent or "built-in",
        "WHERE": lambda row: row.rule.stored_in,
        "EFFECT": lambda row: row.rule.effect,
        "COVERS": lambda row: row.rule.says,
    },
    read=_read_all,
    find=lambda name: _find(name),
    describe=lambda row: "\n".join(rule_lines(row.rule, row.evidence)),
    none="No rules yet. An offer appears after you approve the same shape of request several times.",
    body=lambda row: to_builtins(row.rule),
    document=lambda row: {**to_builtins(row.rule), "evidence": to_builtins(row.evidence)},
    filters=[
        click.option("--all", "every", is_flag=True, help="List revoked and expired rules too."),
        click.option("--offers", is_flag=True, help="List only those that you can accept now."),
    ],
)
RULE = click.argument("rule_id", metavar="RULE")
_REASON = click.option("--reason", default="", metavar="TEXT", help="Record this reason.")


@rules.command(
    "accept",
    epilog=examples(
        "cockpit trust rules accept t-1a2b3c4d5e", "cockpit trust rules accept t-1a2b3c4d5e --yes"
    ),
)
@RULE
@YES
@AS_JSON
def accept(rule_id: str, yes: bool, as_json: bool) -> None:
    """Accept an offer, or a rule that ended.

    The evidence is shown first; then `y` accepts. An agent cannot accept a rule.
    """
    from cockpit.loop.trust.decide_rules import accept_rule, require_the_user

    # Before anything is shown: the holder of a token may not even look here.
    _decide(lambda _, __, decider: require_the_user(decider, "accepting a trust rule"))
    chosen = _find(rule_id)
    if not as_json:
        show("\n".join(rule_lines(chosen.rule, chosen.evidence)))
    confirm("\nAccept exactly this?", yes=yes, undone="no rule was accepted")
    accepted = _decide(lambda tx, settings, decider: accept_rule(tx, settings, rule_id, decider))
    _show_decided(accepted, "accepted", as_json)
    if not as_json and accepted.effect == "pass":
        say("Sessions with the policy trusted use it: cockpit run --approve trusted …")


@rules.command("suspend", epilog=examples("cockpit trust rules suspend t-1a2b3c4d5e"))
@RULE
@_REASON
@AS_JSON
def suspend(rule_id: str, reason: str, as_json: bool) -> None:
    """Suspend a rule until you accept it again."""
    from cockpit.loop.trust.decide_rules import suspend_rule

    ended = _decide(lambda tx, _, decider: suspend_rule(tx, rule_id, decider, reason))
    _show_decided(ended, "suspended", as_json)


@rules.command("revoke", epilog=examples("cockpit trust rules revoke t-1a2b3c4d5e"))
@RULE
@_REASON
@AS_JSON
def revoke(rule_id: str, reason: str, as_json: bool) -> None:
    """Revoke a rule, or decline an offer.

    A rule of permissions.toml is removed from there. Your earlier approvals no longer count for it.
    """
    from cockpit.loop.trust.decide_rules import revoke_rule

    ended = _decide(
        lambda tx, settings, decider: revoke_rule(tx, settings, rule_id, decider, reason)
    )
    _show_decided(ended, "revoked", as_json)


@click.command("trust", epilog=examples("cockpit debug trust"))
@AS_JSON
def show_state(as_json: bool) -> None:
    """Show how far both inner loops collapsed.

    Of each task type: Orient (what may be read) and Decide (what may be done) are early, trusted or
    collapsed.
    """
    from cockpit.loop.trust.list_rules import list_states

    states = _read(list_states)
    show_list(
        as_json,
        [to_builtins(each) for each in states],
        ("TASK TYPE", "ORIENT", "DECIDE", "WHY"),
        [
            (
                each.task_type,
                each.orient.state,
                each.decide.state,
                f"orient: {each.orient.why}; decide: {each.decide.why}",
            )
            for each in states
        ],
        "No decisions yet. The state appears after your first one.",
    )


def rule_lines(rule: ListedRule, evidence: tuple[EvidenceRow, ...]) -> list[str]:
    """Return a rule with its evidence, as text to read before deciding."""
    effect = "passes without asking" if rule.effect == "pass" else "is asked on a short card"
    where = [
        f"  task type   {rule.task_type or 'any'}",
        f"  agent       {rule.agent or 'built-in'}",
        *([f"  project     {rule.project}"] if rule.project else []),
        *([f"  risk        at most {rule.risk}"] if rule.risk else []),
        f"  stored in   {rule.stored_in}",
    ]
    times = [
        (f"  {name:<10}  {value}")
        for name, value in (
            ("accepted", rule.accepted_at),
            ("expires", rule.expires_at),
            ("last used", rule.last_used_at),
        )
        if value
    ]
    used = [f"  uses        {rule.uses}"] if rule.status != "offered" else []
    why = [f"  {rule.why}"] if rule.why else []
    lines = [f"{rule.rule_id} · {rule.status}", f"  {rule.says}", f"  {effect}"]
    lines += [*where, *used, *times, *why]
    if evidence:
        lines.append("  evidence:")
        lines += [
            f"    {row.decided_at[:16].replace('T', ' ')}  {row.proposal_id}  {row.title}"
            for row in evidence
        ]
    return lines


def _find(rule_id: str) -> ShownRule:
    from cockpit.loop.trust.list_rules import list_evidence

    rule = next((each for each in _listing().rules if each.rule_id == rule_id), None)
    if rule is None:
        raise NotFound(f"There is no rule or offer {rule_id}.")
    evidence = _read(
        lambda connection, clock, settings: list_evidence(connection, clock, settings, rule_id)
    )
    return ShownRule(rule, evidence)


def _listing() -> RuleListing:
    from cockpit.loop.trust.list_rules import list_rules

    return _read(list_rules)


def _read(read: Callable[[sqlite3.Connection, Clock, RuntimeSettings], T]) -> T:
    place = find_project()
    settings = load_project_settings(place).runtime
    with open_store(place) as store:
        return store.read_now(lambda connection: read(connection, store.clock, settings))


def _decide(decide: Callable[[Tx, RuntimeSettings, Caller], T]) -> T:
    from cockpit.loop.decisions.decide_proposal import find_holder

    require_records()
    place = find_project()
    settings = load_project_settings(place).runtime
    with open_store(place) as store:
        return store.write_now(lambda tx: decide(tx, settings, find_holder(tx, settings)))


def _show_decided(rule: Rule, done: str, as_json: bool) -> None:
    if as_json:
        record: dict[str, Any] = to_builtins(rule)
        show_json({**record, "says": rule.shape.describe()})
        return
    ends = f" until {rule.expires_at[:10]}" if done == "accepted" and rule.expires_at else ""
    say(f"{rule.rule_id} is {done}{ends}: {rule.shape.describe()}")
