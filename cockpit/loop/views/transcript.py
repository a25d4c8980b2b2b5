"""A session as a list of entries to keep: messages, waves, proposals with their decisions, results.

A proposal and its decision are one entry, at the time of the proposal; the result of an action is an entry of
its own. Secrets are masked once more; text is not cleaned for a terminal.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from msgspec import Struct, field

from cockpit.core.secrets import mask_value
from cockpit.loop.views.event_text import name_speaker
from cockpit.loop.views.story import Storyteller, returning
from cockpit.store.journal import journal
from cockpit.store.journal.details import proposals, waves
from cockpit.store.journal.details.sessions import MessageCompleted, MessageDelta, SessionCreated
from cockpit.store.journal.journal import Row
from cockpit.store.sessions import sessions
from cockpit.store.sessions.proposals import EDITED

FORMAT = "cockpit.session/1"
"""The name of the format that :func:`document` returns."""

Kind = Literal["message", "wave", "proposal", "result", "note"]

_LEFT_OUT = (proposals.ActionDispatched,)


class Entry(Struct):
    """Something that happened, at ``at`` (UTC).

    ``title`` is the speaker, the wave, the proposal or the action; ``text`` is the message or the result.
    ``status`` of a message is ``""``, ``interrupted`` or ``unfinished``; of a proposal its verdict, or
    ``pending``; of a result how it ended. ``verdict`` has ``by``, ``at`` and ``words`` of the decision, and
    the items that an approval was ``narrowed`` to.
    """

    kind: Kind
    at: str
    title: str
    text: str = ""
    status: str = ""
    proposal_id: str = ""
    proposal_kind: str = ""
    risk: str = ""
    verdict: dict[str, Any] = field(default_factory=dict)
    body: Mapping[str, Any] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        """Return the entry as JSON; empty fields are left out."""
        values = {name: getattr(self, name) for name in self.__struct_fields__}
        return {name: value for name, value in values.items() if value}


def document(connection: sqlite3.Connection, session_id: str) -> dict[str, Any]:
    """Return a session and its ``entries``, in the order in which they began.

    Raises :class:`~cockpit.core.errors.NotFound`.
    """
    session = sessions.load(connection, session_id)
    body: dict[str, Any] = {
        "format": FORMAT,
        "session_id": session.session_id,
        "task_type": session.task_type,
        "title": session.title,
        "model": session.model,
        "status": session.status,
        "created_at": session.created_at,
        "updated_at": session.updated_at,
        "result": dict(session.result),
        "entries": [
            entry.record()
            for entry in entries(_rows(connection, session_id), agents=bool(session.agent))
        ],
    }
    masked: dict[str, Any] = mask_value(body)
    return masked


def entries(rows: Iterable[Row], *, agents: bool = False) -> list[Entry]:
    """Return the entries of one session's rows, in the order of the journal.

    ``agents`` says that an external agent has the session.
    """
    collected = _Entries(agents)
    for row in rows:
        collected.add(row)
    return [
        entry
        for entry in collected.entries
        if entry.kind != "message" or entry.text or entry.status
    ]


class _Entries:
    """The entries so far, and what later rows add to them."""

    def __init__(self, agents: bool) -> None:
        self._agents = agents
        self.entries: list[Entry] = []
        self._messages: dict[str, Entry] = {}
        self._proposals: dict[str, Entry] = {}
        self._proposal_of: dict[str, str] = {}
        self._assigned = ""
        self._teller = Storyteller(hints=False, agents=agents)

    def add(self, row: Row) -> None:
        detail = row.detail
        match detail:
            case SessionCreated():
                self._assigned = detail.role
            case MessageDelta():
                entry = self._message(row, detail.message_id, "agent")
                entry.text, entry.status = entry.text + detail.text, "unfinished"
            case MessageCompleted():
                entry = self._message(row, detail.message_id, detail.role)
                entry.text = detail.text
                entry.status = "interrupted" if detail.interrupted else ""
            case waves.WaveStarted() if self._agents:
                return
            case waves.WaveStarted():
                self.entries.append(
                    Entry("wave", row.at, f"Wave {detail.ordinal}{returning(detail)}")
                )
            case proposals.ProposalCreated():
                entry = _proposal(row.at, detail)
                self._proposals[entry.proposal_id] = entry
                self.entries.append(entry)
            case proposals.ProposalDecided() if detail.proposal_id in self._proposals:
                _decide(self._proposals[detail.proposal_id], row.at, detail)
            case proposals.ActionQueued():
                self._proposal_of[detail.action_id] = detail.proposal_id
            case proposals.ActionConfirmed():
                self._result(row.at, detail, "confirmed", detail.summary)
            case proposals.ActionFailed():
                self._result(row.at, detail, "failed", detail.message)
            case proposals.ActionUncertain():
                self._result(row.at, detail, "uncertain", detail.message)
            case _ if not isinstance(detail, _LEFT_OUT):
                if line := self._teller.tell(row).strip():
                    self.entries.append(Entry("note", row.at, line))

    def _message(self, row: Row, message_id: str, role: str) -> Entry:
        entry = self._messages.get(message_id)
        if entry is None:
            speaker = name_speaker(role, self._assigned if role == "person" else "")
            if role == "person":
                self._assigned = ""
            entry = self._messages[message_id] = Entry("message", row.at, speaker)
            self.entries.append(entry)
        return entry

    def _result(self, at: str, detail: proposals.OfAction, status: str, text: str) -> None:
        title, proposal_id = (
            detail.title or detail.type,
            self._proposal_of.get(detail.action_id, ""),
        )
        self.entries.append(Entry("result", at, title, text, status, proposal_id))


def _proposal(at: str, detail: proposals.ProposalCreated) -> Entry:
    return Entry(
        "proposal",
        at,
        detail.title,
        status="pending",
        proposal_id=detail.proposal_id,
        proposal_kind=detail.kind,
        risk=detail.risk,
        body=dict(detail.body),
    )


def _decide(entry: Entry, at: str, detail: proposals.ProposalDecided) -> None:
    words, entry.status = detail.reason, detail.status
    if detail.status == "discussed" and words == EDITED:
        words, entry.status = "", "edited"
    elif detail.is_taken_back:
        entry.status = "withdrawn"
    elif detail.status == "expired":
        words = ""
    verdict = {"by": detail.decided_by, "at": at, "words": words, "narrowed": [*detail.narrowed]}
    entry.verdict = {name: value for name, value in verdict.items() if value}


def _rows(connection: sqlite3.Connection, session_id: str) -> Iterable[Row]:
    after = 0
    while rows := journal.rows(connection, after=after, session_id=session_id):
        yield from rows
        after = rows[-1].seq
