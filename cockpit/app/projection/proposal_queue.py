"""The proposal queue folded from the journal: the pending proposals of all sessions, as they are shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

import msgspec
from msgspec.structs import replace

from cockpit.app.projection.header import SessionState
from cockpit.app.projection.profile_change import shift
from cockpit.core.clock import format_time, parse_time
from cockpit.store.journal.details.detail import read_part
from cockpit.store.journal.details.proposals import (
    AskedQuestion,
    ProposalBody,
    ProposalCreated,
    ProposalDecided,
)
from cockpit.store.journal.details.trust import TrustAccepted, TrustEnded
from cockpit.store.journal.details.waves import ContextItem
from cockpit.store.journal.journal import Row
from cockpit.store.sessions.proposals import (
    EDITED,
    EDITED_BY_YOU,
    UNEDITABLE_ACTIONS,
    Proposal,
)
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
_RISKS: dict[str, Risk] = {"low": "low", "medium": "medium", "high": "high"}


def _nowhere(_: str) -> str:
    return ""


class ActionPreview(msgspec.Struct, frozen=True):
    """One proposal as the journal shows it."""

    proposal_id: str
    session_id: str
    wave_id: str
    kind: str
    title: str
    risk: str
    digest: str
    revises: str
    at: str
    expires_at: str
    body: ProposalBody

    @property
    def answer(self) -> tuple[str, ...]:
        """What it is alike by: kind, tool, and the wave whose answer asks for it.

        Empty for what is decided by itself: all above low risk, what answers a discussion, questions, and
        requests of external agents.
        """
        body = self.body
        is_plain = not (body.widening or body.questions or body.agent or body.card.rule_id)
        is_new = not (self.revises or body.changes)
        if self.kind not in ("action", "context") or self.risk != "low" or not self.wave_id:
            return ()
        return (self.kind, body.type, self.wave_id) if is_plain and is_new else ()


class Queue:
    """Pending proposals in the order of their arrival."""

    def __init__(self) -> None:
        self.pending: dict[str, ActionPreview] = {}
        self.ended_rules: set[str] = set()
        """Trust rules that no longer make a short card."""

    def apply(self, row: Row) -> None:
        """Fold one ``proposal.*`` or ``trust.*`` row."""
        match row.detail:
            case TrustEnded() as ended:
                self.ended_rules.add(ended.rule_id)
            case TrustAccepted() as accepted:
                self.ended_rules.discard(accepted.rule_id)
            case ProposalCreated() as created:
                self.pending[created.proposal_id] = _shown(row, created)
            case ProposalDecided() as decided:
                self.pending.pop(decided.proposal_id, None)

    def view(
        self,
        now: datetime,
        sessions: Mapping[str, SessionState],
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
        if not self.pending:
            return QueueView()
        order = list(self.pending)
        own = [each for each in order if self.pending[each].session_id == followed]
        others = len(order) - len(own)
        if not own:
            waiting = self._waiting(order, 0, now, sessions, chain_of)
            return QueueView(total=len(order), others=others, waiting=waiting)
        chosen = front if front in own else own[0]
        answer = () if is_alone else self.pending[chosen].answer
        alike = [each for each in own if answer and self.pending[each].answer == answer]
        first, *rest = alike or [chosen]
        rows = [each for each in order if each not in rest]
        view, *others_alike = (
            proposal(
                shown,
                now,
                sessions.get(shown.session_id),
                chain_of(shown.session_id),
                card_rule=self.card_rule(shown.body, now),
            )
            for shown in (self.pending[each] for each in (first, *rest))
        )
        index = rows.index(first)
        return QueueView(
            front=replace(view, alike=tuple(others_alike)),
            index=index,
            total=len(order),
            others=others,
            waiting=self._waiting(rows, index, now, sessions, chain_of) if len(rows) > 1 else (),
        )

    def card_rule(self, body: ProposalBody, now: datetime) -> str:
        """Return the rule of a proposal's short card; empty where it ended since."""
        card = body.card
        is_over = bool(card.until) and card.until <= format_time(now)
        return "" if is_over or card.rule_id in self.ended_rules else card.rule_id

    def _waiting(
        self,
        order: list[str],
        index: int,
        now: datetime,
        sessions: Mapping[str, SessionState],
        chain_of: Callable[[str], str],
    ) -> tuple[WaitingView, ...]:
        """Return the rows of the queue around ``index``."""
        first = max(0, min(index - _WAITING_MOST // 2, len(order) - _WAITING_MOST))
        rows = [self.pending[each] for each in order[first : first + _WAITING_MOST]]
        return tuple(
            WaitingView(
                proposal_id=row.proposal_id,
                kind=_KINDS.get(row.kind, "action"),
                risk=_RISKS.get(row.risk, "high"),
                who=" · ".join(filter(None, (row.body.agent, row.body.project, row.body.branch)))
                or _name(sessions.get(row.session_id), chain_of(row.session_id)),
                title=row.title,
                age_s=max(0, _seconds(row.at, now) or 0),
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


def _shown(row: Row, detail: ProposalCreated) -> ActionPreview:
    return ActionPreview(
        proposal_id=detail.proposal_id,
        session_id=row.session_id,
        wave_id=row.wave_id,
        kind=detail.kind,
        title=detail.title,
        risk=detail.risk,
        digest=detail.shown_digest,
        revises=detail.revises,
        at=row.at,
        expires_at=detail.expires_at or "",
        body=detail.shown(),
    )


def preview(stored: Proposal) -> ActionPreview:
    """Return a stored proposal as the journal shows it."""
    return ActionPreview(
        proposal_id=stored.proposal_id,
        session_id=stored.session_id,
        wave_id=stored.wave_id,
        kind=stored.kind,
        title=stored.title,
        risk=stored.risk,
        digest=stored.shown_digest,
        revises=stored.revises or "",
        at=stored.created_at,
        expires_at=stored.expires_at or "",
        body=read_part(ProposalBody, stored.body),
    )


def proposal(
    shown: ActionPreview,
    now: datetime,
    session: SessionState | None,
    chain: str = "",
    *,
    card_rule: str = "",
) -> ProposalView:
    """Return the view that the user decides about. An unknown kind or risk is shown as the highest.

    ``card_rule`` is the rule in force by which it is a short card.
    """
    body = shown.body
    risk = _RISKS.get(shown.risk, "high")
    changes_profile = shown.kind == "profile"
    return ProposalView(
        proposal_id=shown.proposal_id,
        kind=_KINDS.get(shown.kind, "action"),
        title=shown.title,
        risk=risk,
        digest=shown.digest,
        session=shown.session_id,
        task=session.task_id if session else "",
        role=session.role if session else "",
        chain=chain,
        age_s=max(0, _seconds(shown.at, now) or 0),
        left_s=_left(shown.expires_at, now),
        revises=shown.revises,
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
