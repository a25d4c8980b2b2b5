"""One past session at one of its rows: the fold of its rows from the first, drawn as the live one is."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from cockpit.app.state.header import header
from cockpit.app.state.proposal_queue import Pending, queue_view
from cockpit.app.state.screen_state import Views
from cockpit.app.state.session_fold import OpenSession, meter_of
from cockpit.app.state.work import Work
from cockpit.app.state.work_pane import board
from cockpit.store.journal.details.proposals import ProposalCreated, ProposalDecided
from cockpit.store.journal.journal import Row
from cockpit.store.sessions.proposals import Proposal
from cockpit.store.sessions.session_list import Totals


class Replay:
    """A session and its pending proposals after the rows folded so far."""

    def __init__(self, session_id: str) -> None:
        self.at = ""
        self.opened = OpenSession(session_id)
        self.pending: dict[str, Pending] = {}

    def fold(self, rows: Iterable[Row]) -> Replay:
        """Fold the next rows; returns itself."""
        for row in rows:
            self.at = row.at
            self.opened.apply(row)
            match row.detail:
                case ProposalCreated() as created:
                    self.pending[created.proposal_id] = _pending(row, created)
                case ProposalDecided() as decided:
                    self.pending.pop(decided.proposal_id, None)
        return self

    def views(self, now: datetime, *, since: int = 0, warning: str = "") -> Views:
        """The screen as it followed the session then."""
        session, talk = self.opened.session, self.opened.conversation
        has_begun = session.order > 0
        waiting = {session.session_id: ""} if self.pending else {}
        return Views(
            header=header(
                session if has_begun else None,
                pending=len(self.pending),
                asks=bool(self.pending),
                project="",
                branch="",
                warning=warning,
                agent=self.opened.agent,
            ),
            turns=talk.changed(since),
            revision=talk.revision,
            meter=meter_of(self.opened),
            queue=queue_view(self.pending, now, lambda _: session, followed=session.session_id),
            board=board(
                {session.session_id: session} if has_begun else {},
                {session.status: Totals(1, session.cost_usd)} if has_begun else {},
                followed=session.session_id,
                waiting=waiting,
                work=Work(),
            ),
        )


def _pending(row: Row, created: ProposalCreated) -> Pending:
    body = created.shown()
    stored = Proposal(
        proposal_id=created.proposal_id,
        kind=created.kind,
        session_id=row.session_id,
        wave_id=row.wave_id,
        task_id=None,
        revises=created.revises or None,
        title=created.title,
        body={},
        shown_digest=created.shown_digest,
        risk=created.risk,
        status="pending",
        narrowed=None,
        decided_by=None,
        decided_at=None,
        reason="",
        expires_at=created.expires_at,
        created_at=row.at,
    )
    return Pending(stored, body, body.card.rule_id)
