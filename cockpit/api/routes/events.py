"""Durable events for programs: enqueue, claim under a lease, acknowledge, return, dead-letter, count.

The queues of a principal are its own: the namespace comes from the token. See ``docs/reference/http.md``,
events.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from msgspec import Meta, Struct

from cockpit.access.principals import Caller, journal_actor
from cockpit.access.token_scopes import (
    APPROVE,
    AUDIT_READ,
    EVENTS_CLAIM,
    EVENTS_ENQUEUE,
    EVENTS_READ,
)
from cockpit.api.answers import answered, page, read_cursor, tagged
from cockpit.api.callers import Answer, At, Counter
from cockpit.api.operation_document import declared
from cockpit.api.schemas import read_body
from cockpit.core.canonical_json import text_digest
from cockpit.core.clock import format_time
from cockpit.core.errors import NotFound
from cockpit.core.read_record import describe
from cockpit.store.db.keyset_page import select_page
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import events
from cockpit.store.sessions.events import SourceCounts, StoredEvent

router = APIRouter(prefix="/api/events", tags=["events"])

_MARK = "ns:"
_QUEUE = r"^[a-z0-9][a-z0-9._-]{0,63}$"
MAX_CHARACTERS = 1_000_000

State = Literal["waiting", "leased", "returned", "handled", "dead"]
States = Annotated[State, Query(description="Only events in this state.")]
Queue = Annotated[str, Query(max_length=64, description="Only events of this queue.")]
Every = Annotated[
    bool, Query(description="Also the events of sessions and other namespaces (audit.read).")
]
Cursor = Annotated[str, Query(max_length=400, description="The `next` of the page before.")]
Limit = Annotated[int, Query(ge=1, le=200, description="How many at most.")]
_QueueName = Annotated[
    str,
    Meta(pattern=_QUEUE),
    describe("Lower-case letters, digits, `.`, `_`, `-`.", pattern=_QUEUE),
]
_Id = Annotated[str, Meta(max_length=200)]


@dataclass(frozen=True, slots=True)
class EventBody:
    """An event."""

    event_id: str
    queue: str
    namespace: str
    """Whose it is; empty for cockpit's own."""
    source: str
    event_type: str
    tier: int
    state: State
    attempts: int
    max_attempts: int
    created_at: str
    available_at: str
    lease_owner: str | None
    ended_at: str | None
    last_error: str
    trace_id: str
    payload: dict[str, Any]


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events, newest first, and the cursor of the next page."""

    items: list[EventBody]
    next: str | None


@dataclass(frozen=True, slots=True)
class ClaimedEvent:
    """An event under a lease."""

    event_id: str
    queue: str
    event_type: str
    tier: int
    attempts: int
    trace_id: str
    payload: dict[str, Any]
    lease_token: str
    lease_expires_at: str


@dataclass(frozen=True, slots=True)
class ClaimBody:
    """The events that a claim leased; empty where none was claimable."""

    events: list[ClaimedEvent]


@dataclass(frozen=True, slots=True)
class QueueBody:
    """How many events of a queue are in each state."""

    queue: str
    waiting: int
    leased: int
    returned: int
    handled: int
    dead: int
    oldest_waiting_at: str | None


@dataclass(frozen=True, slots=True)
class StatsBody:
    """The caller's queues, by name."""

    queues: list[QueueBody]


class NewEvent(Struct, frozen=True):
    queue: _QueueName
    event_type: Annotated[str, Meta(min_length=1, max_length=100)]
    payload: dict[str, Any]
    source_event_id: (
        Annotated[str, Meta(max_length=200), describe("The sender's id: each is stored once.")]
        | None
    ) = None
    tier: Annotated[int, Meta(ge=0, le=3), describe("Lower tiers are claimed first.")] = 1
    trace_id: _Id = ""


class Claim(Struct, frozen=True):
    queue: _QueueName
    lease_s: Annotated[
        float, Meta(ge=1, le=86_400), describe("Seconds until it is free again.")
    ] = 60.0
    limit: Annotated[int, Meta(ge=1, le=100)] = 1


class Lease(Struct, frozen=True):
    lease_token: _Id


class FailedLease(Struct, frozen=True):
    lease_token: _Id
    error: Annotated[str, Meta(max_length=4_000)]


@router.get(
    "", summary="List events", response_model=EventPage, **declared(EVENTS_READ, has_tag=True)
)
async def list_events(
    at: At,
    request: Request,
    state: States | None = None,
    queue: Queue = "",
    every: Every = False,
    cursor: Cursor = "",
    limit: Limit = 50,
) -> Response:
    """Newest first, of the caller's queues."""

    def look(connection: sqlite3.Connection, caller: Caller) -> dict[str, Any]:
        caller.require(EVENTS_READ, "read events")
        if every:
            caller.require(AUDIT_READ, "read the events of others")
        terms: dict[str, str] = {}
        if state is not None:
            terms[f"{events.STATE}=?"] = state
        if queue:
            terms["source=?"] = _source(caller, queue)
        elif not every:
            prefix = _source(caller, "")
            terms |= {"source>=?": prefix, "source<?": f"{prefix}\U0010ffff"}
        ids, following = select_page(
            connection, "events", after=read_cursor(cursor), limit=limit, terms=terms
        )
        return page([events.load(connection, each) for each in ids], following, _body)

    return tagged(request, await at.read(look))


@router.get("/stats", summary="Count events", response_model=StatsBody, **declared(EVENTS_READ))
async def count_events(at: At) -> StatsBody:
    """By queue and state, of the caller's queues."""

    def look(connection: sqlite3.Connection, caller: Caller) -> StatsBody:
        caller.require(EVENTS_READ, "read events")
        prefix = _source(caller, "")
        return StatsBody(
            [_queue_body(row, prefix) for row in events.count_by_source(connection, prefix)]
        )

    return await at.read(look)


@router.post(
    "",
    summary="Enqueue an event",
    response_model=EventBody,
    status_code=201,
    **declared(
        EVENTS_ENQUEUE,
        body=NewEvent,
        once=True,
        answers={200: {"model": EventBody, "description": "It was enqueued before."}},
    ),
)
async def enqueue(at: At, request: Request) -> Response:
    """It is on disk when this is answered. The same ``source_event_id`` is stored once for each queue."""
    body = await request.body()

    def step(tx: Tx, caller: Caller) -> Answer:
        given = read_body(body, NewEvent, name="the event", max_characters=MAX_CHARACTERS)
        source = _source(caller, given.queue)
        sender_id = given.source_event_id or (
            f"key:{text_digest(at.key)}" if at.key else tx.ids.new("x")
        )
        is_new = events.find_id(tx.connection, source, sender_id) is None
        event_id = events.ingest(
            tx,
            source=source,
            source_event_id=sender_id,
            event_type=given.event_type,
            payload=given.payload,
            tier=given.tier,
            trace_id=given.trace_id,
        )
        return Answer(201 if is_new else 200, _body(events.load(tx.connection, event_id)))

    answer = await at.write_once(EVENTS_ENQUEUE, "enqueue events", step)
    return answered(answer, location=f"{router.prefix}/{answer.body['event_id']}")


@router.post(
    "/claim",
    summary="Claim events",
    response_model=ClaimBody,
    **declared(EVENTS_CLAIM, body=Claim, once=True),
)
async def claim(at: At, request: Request) -> Response:
    """Lease the first claimable events of a queue: the lowest tier first, then the oldest."""
    body = await request.body()

    def step(tx: Tx, caller: Caller) -> Answer:
        given = read_body(body, Claim, name="the claim")
        expires = format_time(tx.clock.now() + timedelta(seconds=given.lease_s))
        claimed = []
        for _ in range(given.limit):
            event = events.claim(
                tx,
                source=_source(caller, given.queue),
                owner=caller.namespace,
                lease_s=given.lease_s,
            )
            if event is None:
                break
            claimed.append(
                {
                    "event_id": event.event_id,
                    "queue": given.queue,
                    "event_type": event.event_type,
                    "tier": event.tier,
                    "attempts": event.attempts,
                    "trace_id": event.trace_id,
                    "payload": dict(event.payload),
                    "lease_token": event.lease_token,
                    "lease_expires_at": expires,
                }
            )
        return Answer(200, {"events": claimed})

    return answered(await at.write_once(EVENTS_CLAIM, "claim events", step))


@router.get(
    "/{event_id}",
    summary="Show an event",
    response_model=EventBody,
    **declared(EVENTS_READ, 404, has_tag=True),
)
async def show_event(at: At, request: Request, event_id: str) -> Response:
    """One of the caller's; with ``audit.read`` any."""

    def look(connection: sqlite3.Connection, caller: Caller) -> dict[str, Any]:
        caller.require(EVENTS_READ, "read events")
        return _body(_own(connection, caller, event_id, AUDIT_READ))

    return tagged(request, await at.read(look))


@router.post(
    "/{event_id}/ack",
    summary="Acknowledge an event",
    response_model=EventBody,
    **declared(EVENTS_CLAIM, 404, 409, body=Lease, once=True),
)
async def acknowledge(at: At, request: Request, event_id: str) -> Response:
    """It was handled. A wrong or expired lease is refused."""
    body = await request.body()

    def end(tx: Tx) -> None:
        given = read_body(body, Lease, name="the lease")
        events.ack(tx, event_id, given.lease_token)

    return await _end(at, event_id, end)


@router.post(
    "/{event_id}/nack",
    summary="Return an event",
    response_model=EventBody,
    **declared(EVENTS_CLAIM, 404, 409, body=FailedLease, once=True),
)
async def give_back(at: At, request: Request, event_id: str) -> Response:
    """It was not handled. It is claimable again after a pause; after too many attempts it is dead."""
    body = await request.body()

    def end(tx: Tx) -> None:
        given = read_body(body, FailedLease, name="the lease")
        events.nack(tx, event_id, given.lease_token, given.error)

    return await _end(at, event_id, end)


@router.post(
    "/{event_id}/dead-letter",
    summary="Dead-letter an event",
    response_model=EventBody,
    **declared(EVENTS_CLAIM, 404, 409, body=FailedLease, once=True),
)
async def dead_letter(at: At, request: Request, event_id: str) -> Response:
    """It can never be handled: it is not tried again before someone retries it."""
    body = await request.body()

    def end(tx: Tx) -> None:
        given = read_body(body, FailedLease, name="the lease")
        events.dead_letter(tx, event_id, given.lease_token, given.error)

    return await _end(at, event_id, end)


@router.post(
    "/{event_id}/retry",
    summary="Retry a dead letter",
    response_model=EventBody,
    **declared(EVENTS_CLAIM, 404, 409, once=True),
)
async def retry(at: At, event_id: str) -> Response:
    """It gets all of its attempts back. One of a session also needs ``orientation.approve``."""

    def step(tx: Tx, caller: Caller) -> Answer:
        _own(tx.connection, caller, event_id, APPROVE)
        return Answer(200, _body(events.retry(tx, event_id, actor=journal_actor(caller))))

    return answered(await at.write_once(EVENTS_CLAIM, "retry events", step))


async def _end(at: Counter, event_id: str, end: Any) -> Response:
    def step(tx: Tx, caller: Caller) -> Answer:
        _own(tx.connection, caller, event_id)
        end(tx)
        return Answer(200, _body(events.load(tx.connection, event_id)))

    return answered(await at.write_once(EVENTS_CLAIM, "end leases on events", step))


def _own(
    connection: sqlite3.Connection, caller: Caller, event_id: str, others: str = ""
) -> StoredEvent:
    """Return an event of the caller's. One of another is not there, unless the caller has ``others``."""
    event = events.load(connection, event_id)
    if event.source.startswith(_source(caller, "")) or (others and others in caller.scopes):
        return event
    raise NotFound(f"There is no event {event_id[:80]} of {caller.namespace}.")


def _queue_body(row: SourceCounts, prefix: str) -> QueueBody:
    counts = row.counts
    return QueueBody(
        row.source.removeprefix(prefix),
        counts["waiting"],
        counts["leased"],
        counts["returned"],
        counts["handled"],
        counts["dead"],
        row.oldest,
    )


def _source(caller: Caller, queue: str) -> str:
    # No namespace has a colon, so no queue of one reads as a queue of another.
    return f"{_MARK}{caller.namespace}:{queue}"


def _body(event: StoredEvent) -> dict[str, Any]:
    is_own = event.source.startswith(_MARK)
    _, namespace, queue = event.source.split(":", 2) if is_own else ("", "", event.source)
    payload: Mapping[str, Any] = json.loads(event.payload_json)
    return {
        "event_id": event.event_id,
        "queue": queue,
        "namespace": namespace,
        "source": event.source,
        "event_type": event.event_type,
        "tier": event.tier,
        "state": event.state,
        "attempts": event.attempts,
        "max_attempts": event.max_attempts,
        "created_at": event.created_at,
        "available_at": event.available_at,
        "lease_owner": event.lease_owner,
        "ended_at": event.ended_at,
        "last_error": event.last_error,
        "trace_id": event.trace_id,
        "payload": dict(payload),
    }
