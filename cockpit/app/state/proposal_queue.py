"""What waits for the user: the pending proposals of all sessions, read once and drawn by every screen."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Container, Iterable, Mapping
from datetime import datetime

import msgspec
from msgspec.structs import replace

from cockpit.app.state.header import SessionState
from cockpit.app.state.profile_change import shift
from cockpit.core.clock import format_time, parse_time
from cockpit.store.journal.details.detail import read_part
from cockpit.store.journal.details.proposals import AskedQuestion, ProposalBody
from cockpit.store.journal.details.waves import ContextItem
from cockpit.store.sessions import proposals
from cockpit.store.sessions.proposals import (
    EDITED,
    EDITED_BY_YOU,
    UNEDITABLE_ACTIONS,
    Proposal,
)
from cockpit.store.trust import trust_rules
from widgets.views import (
    FileDiffView,
    ItemView,
    Kind,
    ProposalView,
    QuestionView,
    QueueView,
    Risk,
    WaitingView,
)

_KINDS: dict[str, Kind] = {
    "context": "context", "action": "action", "profile": "profile", "skill": "skill",
    "permission": "permission",
}  # fmt: skip
_WAITING_MOST = 12
"""Rows of the queue that are drawn at once, around the proposal in front."""
_PENDING_MOST = 10_000
_RISKS: dict[str, Risk] = {"low": "low", "medium": "medium", "high": "high"}


def _nowhere(_: str) -> str:
    return ""


class Pending(msgspec.Struct, frozen=True):
    """A proposal that waits, with its body read."""

    stored: Proposal
    body: ProposalBody
    card_rule: str = ""
    """The trust rule in force by which it is a short card."""

    @property
    def answer(self) -> tuple[str, ...]:
        """What it is alike by: kind, tool, and the wave whose answer asks for it.

        Empty for what is decided by itself: all above low risk, what answers a discussion, questions, and
        requests of external agents.
        """
        body = self.body
        is_plain = not (body.widening or body.questions or body.agent or body.card.rule_id)
        is_new = not (self.stored.revises or body.changes)
        stored = self.stored
        if stored.kind not in ("action", "context") or stored.risk != "low" or not stored.wave_id:
            return ()
        return (stored.kind, body.type, stored.wave_id) if is_plain and is_new else ()


def read_pending(
    connection: sqlite3.Connection, proposal_ids: Iterable[str] | None = None
) -> dict[str, Pending | None]:
    """Return the proposals that wait, in the order of their arrival; of ``proposal_ids``, where given, each
    with None for one that does not wait any more."""
    if proposal_ids is None:
        stored = proposals.select_pending(connection, _PENDING_MOST)
        return {each.proposal_id: _pending(connection, each) for each in stored}
    pending: dict[str, Pending | None] = {}
    for proposal_id in proposal_ids:
        each = proposals.find(connection, proposal_id)
        waits = each is not None and each.status == "pending"
        pending[proposal_id] = _pending(connection, each) if each is not None and waits else None
    return pending


def as_pending(stored: Proposal, rules: Container[str] = ()) -> Pending:
    """Return a stored proposal with its body read; ``rules`` are the trust rules in force."""
    body = read_part(ProposalBody, stored.body)
    return Pending(stored, body, body.card.rule_id if body.card.rule_id in rules else "")


def _pending(connection: sqlite3.Connection, stored: Proposal) -> Pending:
    pending = as_pending(stored)
    rule_id = pending.body.card.rule_id
    rule = trust_rules.find(connection, rule_id) if rule_id else None
    in_force = rule is not None and rule.status == "active"
    return replace(pending, card_rule=rule_id) if in_force else pending


def queue_view(
    pending: Mapping[str, Pending],
    now: datetime,
    find_session: Callable[[str], SessionState | None],
    chain_of: Callable[[str], str] = _nowhere,
    *,
    followed: str = "",
    front: str = "",
    is_alone: bool = False,
) -> QueueView:
    """The queue of the screen that follows a session.

    In front is the proposal ``front`` while it is one of that session, else its oldest: proposals of
    other sessions are rows until their session is followed. What is alike is with it, unless
    ``is_alone``. ``chain_of`` names the session of a chain that a session belongs to.
    """
    if not pending:
        return QueueView()
    order = list(pending)
    own = [each for each in order if pending[each].stored.session_id == followed]
    others = len(order) - len(own)
    if not own:
        waiting = _waiting(pending, order, 0, now, find_session, chain_of)
        return QueueView(total=len(order), others=others, waiting=waiting)
    chosen = front if front in own else own[0]
    answer = () if is_alone else pending[chosen].answer
    alike = [each for each in own if answer and pending[each].answer == answer]
    first, *rest = alike or [chosen]
    rows = [each for each in order if each not in rest]
    view, *others_alike = (
        proposal(
            shown,
            now,
            find_session(shown.stored.session_id),
            chain_of(shown.stored.session_id),
        )
        for shown in (pending[each] for each in (first, *rest))
    )
    index = rows.index(first)
    return QueueView(
        front=replace(view, alike=tuple(others_alike)),
        index=index,
        total=len(order),
        others=others,
        waiting=_waiting(pending, rows, index, now, find_session, chain_of)
        if len(rows) > 1
        else (),
    )


def _waiting(
    pending: Mapping[str, Pending],
    order: list[str],
    index: int,
    now: datetime,
    find_session: Callable[[str], SessionState | None],
    chain_of: Callable[[str], str],
) -> tuple[WaitingView, ...]:
    """Return the rows of the queue around ``index``."""
    first = max(0, min(index - _WAITING_MOST // 2, len(order) - _WAITING_MOST))
    rows = [pending[each] for each in order[first : first + _WAITING_MOST]]
    return tuple(
        WaitingView(
            proposal_id=row.stored.proposal_id,
            kind=_KINDS.get(row.stored.kind, "action"),
            risk=_RISKS.get(row.stored.risk, "high"),
            who=" · ".join(filter(None, (row.body.agent, row.body.project, row.body.branch)))
            or _name(find_session(row.stored.session_id), chain_of(row.stored.session_id)),
            title=row.stored.title,
            age_s=max(0, _seconds(row.stored.created_at, now) or 0),
        )
        for row in rows
    )


def _name(session: SessionState | None, chain: str) -> str:
    """Name for the queue who asks: the role of a chain's task, or the session."""
    if session is None:
        return "no session"
    if chain or session.role:
        parts = (chain, session.task_id, session.role.replace("_", " "))
        return " · ".join(part for part in parts if part)
    return session.name


def proposal(
    pending: Pending,
    now: datetime,
    session: SessionState | None,
    chain: str = "",
) -> ProposalView:
    """Return the view that the user decides about. An unknown kind or risk is shown as the highest."""
    shown, body = pending.stored, pending.body
    is_over = bool(body.card.until) and body.card.until <= format_time(now)
    card_rule = "" if is_over else pending.card_rule
    risk = _RISKS.get(shown.risk, "high")
    changes_profile = shown.kind == "profile"
    return ProposalView(
        proposal_id=shown.proposal_id,
        kind=_KINDS.get(shown.kind, "action"),
        title=shown.title,
        risk=risk,
        digest=shown.shown_digest,
        session=shown.session_id,
        task=session.task_id if session else "",
        role=session.role if session else "",
        chain=chain,
        age_s=max(0, _seconds(shown.created_at, now) or 0),
        left_s=_left(shown.expires_at or "", now),
        revises=shown.revises or "",
        changes=tuple(EDITED_BY_YOU if each == EDITED else each for each in body.changes),
        purpose=body.purpose,
        question=body.question,
        escalation=body.escalation,
        items=tuple(_item(item) for item in body.items),
        fields=() if changes_profile else body.fields,
        body=body.body,
        diffs=tuple(FileDiffView(diff.path, diff.before, diff.after) for diff in body.diffs),
        notes=body.notes,
        shift=shift(body) if changes_profile else None,
        # The user accepted with a second key that this shape takes one.
        second_key=(risk == "high" and not card_rule) or body.widening,
        agent=body.agent if shown.kind in ("permission", "action") else "",
        project=body.project,
        branch=body.branch,
        rule=body.rule.what,
        card_rule=card_rule,
        questions=tuple(_question(each) for each in body.questions) if body.form else (),
        editable=body.editable
        or (shown.kind == "action" and body.type not in UNEDITABLE_ACTIONS and not body.agent),
    )


def _question(question: AskedQuestion) -> QuestionView:
    return QuestionView(
        question.text,
        question.header,
        question.kind,
        question.options,
        question.several,
        question.other,
        question.required,
        question.default,
    )


def _item(item: ContextItem) -> ItemView:
    return ItemView(
        item=item.item,
        tokens=item.tokens if isinstance(item.tokens, int) else None,
        band=item.band or "",
        level=item.level or "full",
        refused=item.refused or "",
        note=item.note or "",
    )


def _seconds(at: str, now: datetime) -> int | None:
    try:
        return int((now - parse_time(at)).total_seconds())
    except ValueError:
        return None


def _left(expires_at: str, now: datetime) -> int | None:
    since = _seconds(expires_at, now) if expires_at else None
    return None if since is None else max(0, -since)
