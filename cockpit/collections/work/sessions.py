"""Sessions of the project, the most recently changed first, and the document of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from cockpit.collections.choose_session import choose_session
from cockpit.collections.collection import LIMIT, Collection, View, open_records
from cockpit.loop.views.session_report import session_document
from cockpit.loop.views.state_signs import state_sign
from cockpit.store.sessions.session_states import select_asking, state_of
from cockpit.store.sessions.sessions import Session, load, select_recent


class SessionRow(Struct, frozen=True):
    """A session and its state, and its document where it is shown alone."""

    session: Session
    state: str
    document: Mapping[str, Any] = {}


def _read(view: View, limit: int) -> Sequence[SessionRow]:
    if view.connection is None:
        return ()
    asking = select_asking(view.connection)
    rows = select_recent(view.connection, limit)
    return [SessionRow(each, state_of(each, asking)) for each in rows]


def _find(view: View, name: str) -> SessionRow:
    connection = open_records(view)
    session = load(connection, choose_session(connection, name, with_agents=True))
    document = session_document(connection, session.session_id)
    return SessionRow(session, document["state"], document)


def _body(row: SessionRow) -> dict[str, Any]:
    session = row.session
    return {
        "session_id": session.session_id,
        "state": row.state,
        "status": session.status,
        "end": str(session.result.get("status", "")) if session.status == "completed" else "",
        "task_type": session.task_type,
        "title": session.title,
        "model": session.model,
        "policy": session.policy,
        "interactive": session.interactive,
        "created_at": session.created_at,
        "updated_at": session.updated_at,
        "cost_usd": session.cost_usd,
        "agent": session.agent,
        "transport": session.transport,
        "branch": session.branch,
    }


COLLECTION: Collection[SessionRow] = Collection(
    name="sessions",
    command="sessions",
    title="Sessions",
    summary="List, show and export sessions.",
    help="""List, show and export the sessions of this project, the most recently changed first.

    SESSION is an id, the beginning of an id, or last. With SESSION it prints the story of that session, or
    with --json the document of `cockpit run --output-format json`.
    """,
    examples=(
        "cockpit sessions --limit 10",
        "cockpit sessions last",
        "cockpit sessions last --json",
    ),
    row="SESSION",
    sample="last",
    columns={
        "SESSION": lambda row: row.session.session_id,
        "STATE": lambda row: state_sign("session", row.state).word,
        "TYPE": lambda row: row.session.task_type,
        "MODEL": lambda row: row.session.model,
        "CHANGED": lambda row: row.session.updated_at[:16].replace("T", " "),
        "TITLE": lambda row: row.session.title,
    },
    read=_read,
    find=_find,
    none="No sessions yet. `cockpit run TASK` starts one.",
    body=_body,
    document=lambda row: row.document,
    filters=(LIMIT,),
    key="f6",
)
