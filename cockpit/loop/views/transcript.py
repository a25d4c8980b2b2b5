"""A session to keep: what was said, what was proposed and what was decided of it, what came of it.

One projection of the session's journal. A proposal and its verdict are one entry, where it was proposed;
an action's outcome is an entry of its own, where it happened. Text is as the journal has it, masked once
more: who writes it into a file or onto a terminal cleans it for that.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from cockpit.core.secrets import mask_value
from cockpit.loop.views.story import WHO, Storyteller
from cockpit.store.journal import journal
from cockpit.store.journal.event_types import Action
from cockpit.store.journal.journal import Row
from cockpit.store.sessions import sessions

FORMAT = "cockpit.session/1"
"""The name of what :func:`document` gives."""

Kind = Literal["message", "wave", "proposal", "result", "note"]

_VERDICTS: Mapping[str, tuple[str, str]] = {
    Action.PROPOSAL_APPROVED: ("approved", "reason"),
    Action.PROPOSAL_REJECTED: ("rejected", "reason"),
    Action.PROPOSAL_DISCUSSED: ("discussed", "words"),
    Action.PROPOSAL_EXPIRED: ("expired", ""),
}
_OUTCOMES: Mapping[str, tuple[str, str]] = {
    Action.ACTION_CONFIRMED: ("confirmed", "summary"),
    Action.ACTION_FAILED: ("failed", "message"),
    Action.ACTION_UNCERTAIN: ("uncertain", "message"),
}
_LEFT_OUT = frozenset({Action.ACTION_DISPATCHED, Action.SESSION_CREATED})


@dataclass(slots=True)
class Entry:
    """One thing that happened, at ``at`` (UTC).

    ``title`` says who speaks, which wave begins, what is proposed or what was done; ``text`` is what was
    said or what came of it. ``status`` of a message is '', ``interrupted`` or ``unfinished``, of a proposal
    its verdict (``pending`` without one), of a result how it ended. ``verdict`` has ``by``, ``at`` and
    ``words`` of who decided, and the items that an approval was ``narrowed`` to.
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
        """The entry as JSON; what it does not have is left out."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in values.items() if value}


def document(connection: sqlite3.Connection, session_id: str) -> dict[str, Any]:
    """A session and its ``entries``, in the order in which they began.

    Raises :class:`~cockpit.core.errors.NotFound`.
    """
    session = sessions.load(connection, session_id)
    told: dict[str, Any] = {
        "format": FORMAT,
        "session_id": session.session_id,
        "task_type": session.task_type,
        "title": session.title,
        "model": session.model,
        "status": session.status,
        "created_at": session.created_at,
        "updated_at": session.updated_at,
        "result": dict(session.result),
        "entries": [entry.record() for entry in entries(_rows(connection, session_id))],
    }
    masked: dict[str, Any] = mask_value(told)
    return masked


def entries(rows: Iterable[Row]) -> list[Entry]:
    """What the rows of one session tell, in the order of the journal."""
    found: list[Entry] = []
    messages: dict[str, Entry] = {}
    proposed: dict[str, Entry] = {}
    asked: dict[str, str] = {}
    teller = Storyteller(hints=False)
    for row in rows:
        detail = row.raw_detail()
        if row.action in (Action.MESSAGE_DELTA, Action.MESSAGE_COMPLETED):
            entry = messages.get(str(detail["message_id"]))
            if entry is None:
                who = WHO[str(detail.get("role", "agent"))]
                entry = messages[str(detail["message_id"])] = Entry("message", row.at, who)
                found.append(entry)
            _say(entry, row)
        elif row.action == Action.WAVE_STARTED:
            found.append(Entry("wave", row.at, f"Wave {detail['ordinal']}"))
        elif row.action == Action.PROPOSAL_CREATED:
            entry = _proposal(row)
            proposed[entry.proposal_id] = entry
            found.append(entry)
        elif row.action in _VERDICTS and str(detail["proposal_id"]) in proposed:
            _decide(proposed[str(detail["proposal_id"])], row)
        elif row.action == Action.ACTION_QUEUED:
            asked[str(detail["action_id"])] = str(detail.get("proposal_id") or "")
        elif row.action in _OUTCOMES:
            status, words = _OUTCOMES[row.action]
            found.append(
                Entry(
                    "result",
                    row.at,
                    str(detail.get("title") or detail["type"]),
                    str(detail.get(words) or ""),
                    status,
                    asked.get(str(detail["action_id"]), ""),
                )
            )
        elif row.action not in _LEFT_OUT and (line := teller.tell(row).strip()):
            found.append(Entry("note", row.at, line))
    return [entry for entry in found if entry.kind != "message" or entry.text or entry.status]


def _say(entry: Entry, row: Row) -> None:
    text = str(row.raw_detail()["text"])
    if row.action == Action.MESSAGE_DELTA:
        entry.text, entry.status = entry.text + text, "unfinished"
    else:
        entry.text = text
        entry.status = "interrupted" if row.raw_detail().get("interrupted") else ""


def _proposal(row: Row) -> Entry:
    detail = row.raw_detail()
    return Entry(
        "proposal",
        row.at,
        str(detail["title"]),
        status="pending",
        proposal_id=str(detail["proposal_id"]),
        proposal_kind=str(detail["kind"]),
        risk=str(detail["risk"]),
        body=dict(detail["body"]),
    )


def _decide(entry: Entry, row: Row) -> None:
    entry.status, words = _VERDICTS[row.action]
    verdict = {
        "by": row.raw_detail().get("decided_by") or "",
        "at": row.at,
        "words": row.raw_detail().get(words) or "" if words else "",
        "narrowed": list(row.raw_detail().get("narrowed") or ()),
    }
    entry.verdict = {name: value for name, value in verdict.items() if value}


def _rows(connection: sqlite3.Connection, session_id: str) -> Iterable[Row]:
    after = 0
    while rows := journal.rows(connection, after=after, session_id=session_id):
        yield from rows
        after = rows[-1].seq
