"""The journal as server-sent events. See ``docs/reference/http.md``, journal."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from typing import Annotated

from msgspec import Meta, Struct
from starlette.responses import Response, StreamingResponse

from cockpit.access.capability_tokens import TokenRefused
from cockpit.access.principals import Caller
from cockpit.access.token_scopes import AUDIT_READ, NotAllowed
from cockpit.api.callers import Counter
from cockpit.api.operations import Topic, header
from cockpit.api.schemas import BodyMalformed
from cockpit.api.server_sent_events import (
    MEDIA_TYPE,
    RETRY_MS,
    Filter,
    JournalStream,
    check_start,
    encode_event,
    read_last_id,
)
from cockpit.core.errors import CockpitError
from cockpit.core.read_record import describe

topic = Topic("journal", "/api")

CHECK_S = 2.0
"""Seconds between two looks whether a stream's token is still valid."""

_EVENT = {
    "type": "object",
    "required": ["data"],
    "properties": {
        "id": {"type": "string", "description": "The row's seq; absent of other events."},
        "event": {"type": "string", "description": "`pruned` or `end`; absent of rows."},
        "data": {"type": "string", "description": "The row as a JSON object."},
    },
}


class JournalQuery(Struct, frozen=True):
    after: Annotated[int, Meta(ge=0, le=2**53), describe("Only rows after this seq.")] = 0
    session_id: Annotated[str, Meta(max_length=100), describe("Only rows of this session.")] = ""
    action: Annotated[str, Meta(max_length=100), describe("Only rows of this event type.")] = ""
    follow: Annotated[bool, describe("False ends the stream at the journal's end.")] = True


@topic.operation(
    "GET",
    "/journal",
    "Follow the journal",
    AUDIT_READ,
    returns=_EVENT,
    media_type=MEDIA_TYPE,
    query=JournalQuery,
    headers=[
        header(
            "Last-Event-ID", "The seq of the last row that was seen; it comes before `after`.", 40
        )
    ],
)
async def follow_journal(at: Counter, query: JournalQuery) -> Response:
    """Each row once, in order. A client that connects again with the last id misses none.

    The event ``pruned`` says up to which row older rows are gone; ``end`` says why the stream ends.
    """
    place = query.after
    if last_event_id := at.request.headers.get("last-event-id", ""):
        seen = read_last_id(last_event_id)
        if seen is None:
            raise BodyMalformed("Last-Event-ID must be the seq of a row.")
        place = seen

    def look(connection: sqlite3.Connection, caller: Caller) -> int:
        caller.require(AUDIT_READ, "follow the journal")
        return check_start(connection, place)

    pruned = await at.read(look)
    stream: JournalStream = at.request.app.state.stream
    wanted = Filter(query.session_id, query.action)
    return StreamingResponse(
        _send(at, stream, place, wanted, pruned, query.follow), media_type=MEDIA_TYPE
    )


async def _send(
    at: Counter, stream: JournalStream, place: int, wanted: Filter, pruned: int, follows: bool
) -> AsyncIterator[bytes]:
    yield f"retry: {RETRY_MS}\n\n".encode()
    if pruned:
        yield encode_event("pruned", {"through": pruned})
    clock = at.store.clock
    checked_at = clock.monotonic()
    events = stream.events(place, wanted, follows=follows)
    try:
        async for data in events:
            if clock.monotonic() - checked_at >= CHECK_S:
                checked_at = clock.monotonic()
                ended = await _explain_end(at)
                if ended is not None:
                    yield encode_event("end", {"code": ended.code, "detail": str(ended)})
                    return
            if data:
                yield data
    finally:
        await events.aclose()


async def _explain_end(at: Counter) -> CockpitError | None:
    """Return why the caller may no longer follow the journal; None where it may."""
    try:
        await at.read(lambda _, caller: caller.require(AUDIT_READ, "follow the journal"))
    except (TokenRefused, NotAllowed) as error:
        return error
    return None
