"""Events of programs: stored once, and told to every program that follows the journal.

See ``docs/reference/http.md``, events.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from starlette.responses import Response

from cockpit.access.principals import Caller
from cockpit.access.token_scopes import EVENTS_ENQUEUE
from cockpit.api.answers import answered
from cockpit.api.callers import Answer, Counter
from cockpit.api.operations import Topic
from cockpit.api.resources import row_schema
from cockpit.api.schemas import read_body
from cockpit.core.canonical_json import text_digest
from cockpit.core.read_record import describe
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import events
from cockpit.store.sessions.events import StoredEvent

topic = Topic("events", "/api/events")

_QUEUE = r"^[a-z0-9][a-z0-9._-]{0,63}$"
LONGEST_EVENT = 100_000
"""Characters of an event's body: the journal's row carries it."""
_EVENT = row_schema(StoredEvent)


class NewEvent(Struct, frozen=True):
    queue: Annotated[
        str,
        Meta(pattern=_QUEUE),
        describe("Lower-case letters, digits, `.`, `_`, `-`.", pattern=_QUEUE),
    ]
    event_type: Annotated[str, Meta(min_length=1, max_length=100)]
    payload: dict[str, Any]
    source_event_id: (
        Annotated[str, Meta(max_length=200), describe("The sender's id: each is stored once.")]
        | None
    ) = None
    trace_id: Annotated[str, Meta(max_length=200)] = ""


@topic.operation(
    "POST",
    "",
    "Send an event",
    EVENTS_ENQUEUE,
    status=201,
    returns=_EVENT,
    body=NewEvent,
    once=True,
)
async def send(at: Counter) -> Response:
    """It is on disk when this is answered, and in the journal with its payload, as ``event.ingested``. The
    same ``source_event_id`` is stored once for each queue."""
    body = await at.request.body()

    def step(tx: Tx, caller: Caller) -> Answer:
        given = read_body(body, NewEvent, name="the event", max_characters=LONGEST_EVENT)
        # No namespace has a colon, so no queue of one reads as a queue of another, nor as a session's.
        source = f"ns:{caller.namespace}:{given.queue}"
        own = f"key:{text_digest(at.key)}" if at.key else tx.ids.new("x")
        sender_id = given.source_event_id or own
        event_id = events.ingest(
            tx,
            source=source,
            source_event_id=sender_id,
            event_type=given.event_type,
            payload=given.payload,
            trace_id=given.trace_id,
            for_followers=True,
        )
        stored = events.load(tx.connection, event_id)
        return Answer(201, msgspec.to_builtins(stored))

    return answered(await at.write_once(EVENTS_ENQUEUE, "send events", step))
