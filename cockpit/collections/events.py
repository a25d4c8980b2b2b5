"""Events that begin waves, dead letters among them, newest first."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from msgspec import to_builtins

from cockpit.access.token_scopes import APPROVE, AUDIT_READ
from cockpit.collections.collection import LIMIT, Collection, Doing, Field, Verb, View, open_records
from cockpit.store.sessions import events
from cockpit.store.sessions.events import EVENT_STATES, StoredEvent


def _read(view: View, state: Any, limit: int) -> Sequence[StoredEvent]:
    if view.connection is None:
        return ()
    return events.select_recent(view.connection, limit, state=state)


def _retry(doing: Doing, row: StoredEvent) -> str:
    event = events.retry(doing.tx, row.event_id)
    kind, _, session = event.source.partition("session/")
    resume = f" Resume its session: cockpit -r {session}" if session and not kind else ""
    return f"{event.event_id} waits to be handled.{resume}"


def _body(row: StoredEvent) -> dict[str, Any]:
    body: dict[str, Any] = to_builtins(row)
    del body["payload_json"]
    return body


RETRY = Verb[StoredEvent](
    "retry",
    "Resume a dead letter in a new wave",
    _retry,
    key="r",
    activity="retrying an event",
    takes=lambda row: row.state == "dead",
    who="holder",
    scope=APPROVE,
    has_command=False,  # an option of the command
)

COLLECTION = Collection[StoredEvent](
    name="events",
    command="debug events",
    title="Events",
    summary="List, show and retry events of sessions.",
    help="""List, show and retry the events that begin waves, newest first.

    An event whose wave failed too often is a dead letter: it stays until you retry it.
    """,
    examples=(
        "cockpit debug events --state dead",
        "cockpit debug events e-1a2b3c",
        "cockpit debug events e-1a2b3c --retry",
    ),
    row="EVENT",
    sample="e-1a2b3c",
    columns={
        "EVENT": lambda row: row.event_id,
        "STATE": lambda row: row.state,
        "TYPE": lambda row: row.event_type,
        "TRIES": lambda row: f"{row.attempts}/{row.max_attempts}",
        "CREATED": lambda row: row.created_at[:16].replace("T", " "),
        "ERROR": lambda row: row.last_error[:60].replace("\n", " "),
        "SOURCE": lambda row: row.source,
    },
    read=_read,
    find=lambda view, name: events.load(open_records(view), name),
    none=lambda state=None, **_: "No events yet." if state is None else f"No event is {state}.",
    body=_body,
    document=lambda row: {**_body(row), "payload": json.loads(row.payload_json)},
    filters=(Field("state", "List only events in this state.", choices=EVENT_STATES), LIMIT),
    scope=AUDIT_READ,
    synonyms="dead letters queue",
    verbs=(RETRY,),
)
