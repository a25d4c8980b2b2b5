"""Context requests: what the agent asked to read, what was approved, and what reading gave.

Specified in ``docs/reference/loop.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import UNSET, Struct

from cockpit.core.canonical_json import canonical_json, parse_json
from cockpit.core.errors import Altered, NotFound
from cockpit.core.secrets import mask, mask_value
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.detail import read_part
from cockpit.store.journal.details.waves import (
    ContextFetched,
    ContextItem,
    ContextRequested,
    FetchedItem,
)
from cockpit.store.sessions import proposals

FRAME_PURPOSE = "the project's frame"
"""The purpose of the request for the frame, which cockpit grants itself."""
NAMED_PURPOSE = "what you named"
"""The purpose of a request for files that the user named in typed words."""


WRITTEN_PURPOSE = "the task's text names these files"
"""The purpose of cockpit's own proposal to read what pasted or foreign text names."""


class ContextRequest(Struct, frozen=True):
    """One row of ``context_requests``."""

    request_id: str
    session_id: str
    wave_id: str
    call_id: str
    proposal_id: str | None
    purpose: str
    question: str
    escalation: str
    items: tuple[Mapping[str, Any], ...]
    """Previews of the scope items, as shown."""
    status: str
    approved: tuple[str, ...]
    """The scope items that may be read."""
    outcomes: tuple[Mapping[str, Any], ...]
    """What reading the items gave."""
    decided_by: str


_SELECT = (
    "SELECT request_id, session_id, wave_id, call_id, proposal_id, purpose, question, escalation,"
    " scope_json, status, approved_json, outcome_json, decided_by FROM context_requests"
)


def create(
    tx: Tx,
    *,
    request_id: str,
    session_id: str,
    wave_id: str,
    purpose: str,
    question: str,
    items: Sequence[Mapping[str, Any]],
    call_id: str = "",
    escalation: str = "",
    proposal_id: str | None = None,
    decided_by: str = "",
    rule: str = "",
    stored: int = 0,
) -> ContextRequest:
    """Store a request and journal it.

    It is pending with its proposal, or approved at once because its items are declared deterministic or
    fetched by the attention ``rule``; then ``decided_by`` names that. ``stored`` counts the items that are
    served from stored facts. Idempotent by ``request_id``.
    """
    row = tx.execute(f"{_SELECT} WHERE request_id=?", (request_id,)).fetchone()
    if row is not None:
        return _read(row)
    auto = decided_by != ""
    items = mask_value([dict(item) for item in items])
    approved = [item["item"] for item in items if not item.get("refused")] if auto else []
    purpose, question, escalation = mask(purpose), mask(question), mask(escalation)
    tx.execute(
        "INSERT INTO context_requests(request_id, session_id, wave_id, call_id, proposal_id, purpose,"
        " question, scope_json, escalation, status, approved_json, decided_by, created_at, decided_at)"
        " VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
        (
            request_id,
            session_id,
            wave_id,
            call_id,
            proposal_id,
            purpose,
            question,
            canonical_json(items),
            escalation,
            "approved" if auto else "pending",
            canonical_json(approved),
            decided_by,
            tx.now(),
            tx.now() if auto else None,
        ),
    )
    tx.journal(
        ContextRequested(
            request_id=request_id,
            proposal_id=proposal_id or "",
            purpose=purpose,
            question=question,
            escalation=escalation,
            items=tuple(read_part(ContextItem, item) for item in items),
            auto=auto,
            rule=rule or UNSET,
            stored=stored or UNSET,
        ),
        actor=decided_by if auto else "agent",
        session_id=session_id,
        wave_id=wave_id,
    )
    return load(tx.connection, request_id)


def apply_decision(
    tx: Tx, request_id: str, status: str, *, approved: Sequence[str], decided_by: str
) -> ContextRequest:
    """Apply the decision on the request's proposal to the request.

    Raises :class:`~cockpit.core.errors.Altered` for one that was not approved as it is.
    """
    proposal_id = load(tx.connection, request_id).proposal_id
    if status == "approved" and proposal_id is not None:
        proposals.load_approved(tx.connection, proposal_id)
    tx.execute(
        "UPDATE context_requests SET status=?, approved_json=?, decided_by=?, decided_at=?"
        " WHERE request_id=? AND status='pending'",
        (status, canonical_json(mask_value(list(approved))), decided_by, tx.now(), request_id),
    )
    return load(tx.connection, request_id)


def record_fetched(
    tx: Tx,
    request_id: str,
    *,
    wave_id: str,
    outcomes: Sequence[Mapping[str, Any]],
    latency_ms: int | None = None,
) -> None:
    """Record that the approved items were read in ``wave_id``, and journal it."""
    request = load(tx.connection, request_id)
    safe = mask_value([dict(outcome) for outcome in outcomes])
    tx.execute(
        "UPDATE context_requests SET status='fetched', outcome_json=?, fetched_at=?"
        " WHERE request_id=?",
        (canonical_json(safe), tx.now(), request_id),
    )
    tx.journal(
        ContextFetched(
            request_id=request_id,
            items=tuple(read_part(FetchedItem, item) for item in safe),
            facts=sum(int(outcome.get("facts", 0)) for outcome in outcomes),
            new=sum(int(outcome.get("new", 0)) for outcome in outcomes),
            tokens=sum(int(outcome.get("tokens", 0)) for outcome in outcomes),
        ),
        session_id=request.session_id,
        wave_id=wave_id,
        latency_ms=latency_ms,
    )


def load(connection: sqlite3.Connection, request_id: str) -> ContextRequest:
    """Read the request of that id. Raises :class:`NotFound`."""
    request = find(connection, request_id)
    if request is None:
        raise NotFound(f"There is no context request {request_id}.")
    return request


def find(connection: sqlite3.Connection, request_id: str) -> ContextRequest | None:
    """Read the request of that id, or None."""
    row = connection.execute(f"{_SELECT} WHERE request_id=?", (request_id,)).fetchone()
    return None if row is None else _read(row)


def was_rejected(connection: sqlite3.Connection, session_id: str, items: Sequence[str]) -> bool:
    """Whether the user rejected a request of the session for exactly these scope items."""
    rows = connection.execute(
        "SELECT scope_json FROM context_requests WHERE session_id=? AND status='rejected'",
        (session_id,),
    )
    wanted = set(items)
    return any(
        {str(item.get("item", "")) for item in parse_json(scope)} == wanted for (scope,) in rows
    )


def select_by_status(
    connection: sqlite3.Connection, session_id: str, status: str
) -> list[ContextRequest]:
    """Read a session's requests of one status, oldest first."""
    rows = connection.execute(
        f"{_SELECT} WHERE session_id=? AND status=? ORDER BY created_at, rowid",
        (session_id, status),
    )
    return [_read(row) for row in rows]


def select_granted(connection: sqlite3.Connection, session_id: str) -> list[ContextRequest]:
    """Read a session's approved requests that are to be read now, oldest first.

    Raises :class:`~cockpit.core.errors.Altered` for one that is not as it was asked for and granted.
    """
    granted = select_by_status(connection, session_id, "approved")
    for request in granted:
        _require_granted(connection, request)
    return granted


def _require_granted(connection: sqlite3.Connection, request: ContextRequest) -> None:
    if request.proposal_id is None:
        return
    proposal = proposals.load_approved(connection, request.proposal_id)
    shown = {item["item"] for item in proposal.body["items"] if not item["refused"]}
    kept = shown if proposal.narrowed is None else shown & set(proposal.narrowed)
    if proposal.session_id != request.session_id or not set(request.approved) <= kept:
        raise Altered(
            f"The context request {request.request_id} is not as it was granted: it was changed in the"
            " store. Nothing was read for it."
        )


def _read(row: tuple[Any, ...]) -> ContextRequest:
    values = list(row)
    values[8] = tuple(parse_json(values[8]))
    values[10] = tuple(parse_json(values[10]))
    values[11] = tuple(parse_json(values[11]))
    return ContextRequest(*values)
