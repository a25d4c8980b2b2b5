"""The audit log over HTTP: the journal's rows, for programs that may read them."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Query

from cockpit.access.principals import Caller
from cockpit.access.token_scopes import AUDIT_READ
from cockpit.api.callers import At
from cockpit.api.operation_document import declared
from cockpit.store.journal import journal

router = APIRouter(prefix="/api/admin", tags=["audit"])

After = Annotated[int, Query(ge=0, le=2**53, description="Only rows after this seq.")]
Limit = Annotated[int, Query(ge=1, le=1_000, description="How many at most.")]
Action = Annotated[
    str, Query(max_length=100, description="Only rows of this event type, such as access.refused.")
]
Session = Annotated[str, Query(max_length=100, description="Only rows of this session.")]


@dataclass(frozen=True, slots=True)
class AuditPage:
    """Rows of the journal, oldest first."""

    rows: list[dict[str, Any]]
    next: int | None
    last_seq: int


@router.get(
    "/audit", summary="Read the audit log", response_model=AuditPage, **declared(AUDIT_READ)
)
async def read_audit(
    at: At, after: After = 0, limit: Limit = 100, action: Action = "", session_id: Session = ""
) -> dict[str, Any]:
    """Rows of the journal in the order in which they were written, with their digests.

    ``next`` is the ``after`` of the following page, or null where no row follows yet; ``last_seq`` is the
    newest row's seq.
    """

    def look(connection: sqlite3.Connection, caller: Caller) -> dict[str, Any]:
        caller.require(AUDIT_READ, "read the audit log")
        rows = journal.rows(
            connection,
            after=after,
            session_id=session_id or None,
            action=action or None,
            limit=limit + 1,
        )
        page = rows[:limit]
        return {
            "rows": [row.body() for row in page],
            "next": page[-1].seq if len(rows) > limit else None,
            "last_seq": journal.last_seq(connection),
        }

    return await at.read(look)
