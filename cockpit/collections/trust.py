"""Trust rules: offers, rules and the decisions that each stands on, and the user's decisions about them.

Specified in ``docs/reference/trust.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.collections.collection import Collection, Doing, Field, Listed, Part, Verb, View
from cockpit.core.errors import NotFound
from cockpit.core.text import pluralize

if TYPE_CHECKING:
    from cockpit.loop.trust.list_rules import ListedRule

_ENDED = ("revoked", "expired")
_ACCEPTABLE = ("offered", "suspended", *_ENDED)


def _read(view: View, every: bool, offers: bool) -> Listed[ListedRule]:
    if view.connection is None:
        return Listed(())
    from cockpit.loop.trust.list_rules import list_rules

    listing = list_rules(view.connection, view.clock, view.settings)
    rows = [
        rule
        for rule in listing.rules
        if (rule.status == "offered" if offers else every or rule.status not in _ENDED)
    ]
    return Listed(rows, listing.problems)


def _find(view: View, name: str) -> ListedRule:
    from cockpit.loop.trust.list_rules import list_evidence

    for rule in _read(view, every=True, offers=False).rows:
        if rule.rule_id == name and view.connection is not None:
            evidence = list_evidence(view.connection, view.clock, view.settings, name)
            return replace(rule, evidence=evidence)
    raise NotFound(f"There is no rule or offer {name}.")


def _accept(doing: Doing, row: ListedRule) -> str:
    from cockpit.loop.trust.decide_rules import accept_rule

    rule = accept_rule(doing.tx, doing.view.settings, row.rule_id, doing.caller)
    until = f" until {rule.expires_at[:10]}" if rule.expires_at else ""
    used = " Sessions with the policy trusted use it." if rule.effect == "pass" else ""
    return f"{rule.rule_id} is accepted{until}: {rule.shape.describe()}.{used}"


def _suspend(doing: Doing, row: ListedRule) -> str:
    from cockpit.loop.trust.decide_rules import suspend_rule

    suspend_rule(doing.tx, row.rule_id, doing.caller, doing.text)
    return f"{row.rule_id} is suspended: {row.says}"


def _revoke(doing: Doing, row: ListedRule) -> str:
    from cockpit.loop.trust.decide_rules import revoke_rule

    revoke_rule(doing.tx, doing.view.settings, row.rule_id, doing.caller, doing.text)
    return f"{row.rule_id} is revoked: {row.says}"


def _is_of_profile(row: ListedRule) -> bool:
    return "/" in row.rule_id  # it ends with its profile, or its line in the settings


def _about(row: ListedRule) -> str:
    what = "short card" if row.effect == "card" else "passes"
    uses = pluralize(row.uses, "use") if row.uses else ""
    return " · ".join(filter(None, (row.task_type or "any task type", row.agent, what, uses)))


def _detail(row: ListedRule) -> Sequence[Part]:
    effect = "passes without asking" if row.effect == "pass" else "is asked on a short card"
    facts = [
        ("state", row.status),
        ("effect", effect),
        ("task type", row.task_type or "any"),
        ("agent", row.agent or "built-in"),
        ("project", row.project),
        ("stored in", row.stored_in),
        ("risk", f"at most {row.risk}" if row.risk else ""),
        ("accepted", (row.accepted_at or "")[:10]),
        ("expires", (row.expires_at or "")[:10]),
        ("last used", (row.last_used_at or "")[:16].replace("T", " ")),
        ("uses", "" if row.status == "offered" else str(row.uses)),
        ("why", row.why),
    ]
    approved = [
        (f"{each.decided_at[:16].replace('T', ' ')}  {each.proposal_id}", each.title or "–")
        for each in row.evidence
    ]
    return (
        Part(text=row.rule_id),
        Part(text=row.says),
        Part(fields=facts),
        Part("evidence: what you approved", approved),
    )


def _count(rows: Sequence[ListedRule]) -> str:
    if not rows:
        return "what passes without asking, and why"
    active, offered = (sum(row.status == state for row in rows) for state in ("active", "offered"))
    return f"{active} active, {pluralize(offered, 'offer')}"


SUSPEND: Verb[ListedRule] = Verb(
    "suspend",
    "Suspend a rule",
    _suspend,
    key="s",
    activity="suspending a trust rule",
    takes=lambda row: row.status == "active" and not _is_of_profile(row),
    who="holder",
    has_reason=True,
    has_command=False,  # an option of revoke
)
REVOKE: Verb[ListedRule] = Verb(
    "revoke",
    "Revoke a rule, or decline its offer",
    _revoke,
    key="x",
    activity="revoking a trust rule",
    takes=lambda row: row.status != "revoked" and not _is_of_profile(row),
    question="revokes it",
    who="holder",
    has_reason=True,
    label=lambda row: "decline" if row.status == "offered" else "revoke",
    has_command=False,
)

COLLECTION: Collection[ListedRule] = Collection(
    name="trust",
    command="trust rules",
    title="Trust rules",
    summary="List and decide trust rules.",
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
    sample="t-1a2b3c4d5e",
    columns={
        "RULE": lambda row: row.rule_id,
        "STATUS": lambda row: row.status,
        "USES": lambda row: "–" if row.status == "offered" else str(row.uses),
        "TASK TYPE": lambda row: row.task_type or "any",
        "AGENT": lambda row: row.agent or "built-in",
        "WHERE": lambda row: row.stored_in,
        "EFFECT": lambda row: row.effect,
        "COVERS": lambda row: row.says,
    },
    read=_read,
    find=_find,
    none="No rules yet. An offer appears after you approve the same shape of request several times.",
    detail=_detail,
    filters=(
        Field(
            "every", "List revoked and expired rules too.", "--all", "flag", default=False, key="h"
        ),
        Field("offers", "List only those that you can accept now.", kind="flag", default=False),
    ),
    key="alt+r",
    synonyms="allow permissions",
    about=_about,
    headline=_count,
    verbs=(
        Verb(
            "accept",
            "Accept a rule",
            _accept,
            key="a",
            activity="accepting a trust rule",
            takes=lambda row: row.status in _ACCEPTABLE and not _is_of_profile(row),
            risk="high",
            question="accepts exactly this",
            is_enter=True,
            help="An offer, or a rule that ended. An agent cannot accept a rule.",
        ),
        SUSPEND,
        REVOKE,
    ),
)
