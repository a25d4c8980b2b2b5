"""Durable events: ingested → claimable → leased → acked | nacked → … | dead-lettered.

One lease owner at a time, and only the owner acknowledges; an expired lease makes the event claimable again.
Specified in ``docs/reference/kernel.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Literal

from msgspec import UNSET, Struct

from cockpit.core.canonical_json import parse_json
from cockpit.core.clock import format_time
from cockpit.core.errors import IllegalTransition, NotFound
from cockpit.core.secrets import mask, masked_json
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.sessions import (
    EventIngested,
)

_AT_ONCE = 200
"""Events that are read at once."""
BACKOFF_S = (1, 5, 30, 120, 600)
"""Seconds until a nacked event is claimable again, by attempt."""


class Event(Struct, frozen=True):
    """One ingested event."""

    event_id: str
    source: str
    event_type: str
    tier: int
    """Lower tiers are claimed first."""
    payload: Mapping[str, Any]
    attempts: int
    trace_id: str


EventState = Literal["waiting", "leased", "returned", "handled", "dead"]
EVENT_STATES: tuple[EventState, ...] = ("waiting", "leased", "returned", "handled", "dead")


class StoredEvent(Struct, frozen=True):
    """One event as it is listed."""

    event_id: str
    source: str
    event_type: str
    tier: int
    state: EventState
    """``returned`` events failed and are tried again; ``dead`` ones failed too often."""
    attempts: int
    max_attempts: int
    created_at: str
    available_at: str
    """When it can be claimed."""
    lease_owner: str | None
    ended_at: str | None
    """When it was handled, or became a dead letter."""
    last_error: str
    trace_id: str
    payload_json: str


STATE = (
    "CASE WHEN acked_at IS NOT NULL THEN 'handled' WHEN dead_letter_at IS NOT NULL THEN 'dead'"
    " WHEN lease_owner IS NOT NULL THEN 'leased' WHEN nacked_at IS NOT NULL THEN 'returned'"
    " ELSE 'waiting' END"
)
"""The state of an event, in SQL."""
_SELECT = (
    f"SELECT event_id, source, event_type, tier, {STATE}, attempts, max_attempts, created_at,"  # noqa: S608 - fixed columns
    " available_at, lease_owner, coalesce(acked_at, dead_letter_at), coalesce(last_error, ''),"
    " trace_id, payload_json FROM events"
)
_RELEASE = ", lease_owner=NULL, lease_token=NULL, lease_expires_at=NULL WHERE event_id=?"


def ingest(
    tx: Tx,
    *,
    source: str,
    source_event_id: str,
    event_type: str,
    payload: Mapping[str, Any],
    tier: int = 1,
    trace_id: str = "",
    for_followers: bool = False,
) -> str:
    """Store an event once per (source, source_event_id); returns its id, new or not.

    One ``for_followers`` is handled at once: its row of the journal carries the payload to the programs that
    follow the journal, and nothing claims it.
    """
    event_id = tx.ids.new("e")
    now = tx.now()
    added = tx.execute(
        "INSERT INTO events(event_id, source, source_event_id, event_type, tier, payload_json,"
        " created_at, available_at, trace_id) VALUES (?,?,?,?,?,?,?,?,?)"
        " ON CONFLICT(source, source_event_id) DO NOTHING",
        (
            event_id,
            source,
            source_event_id,
            event_type,
            tier,
            masked_json(dict(payload)),
            now,
            now,
            trace_id,
        ),
    )
    if added.rowcount != 1:
        (stored,) = tx.execute(
            "SELECT event_id FROM events WHERE source=? AND source_event_id=?",
            (source, source_event_id),
        ).fetchone()
        return str(stored)
    if for_followers:
        tx.execute("UPDATE events SET acked_at=? WHERE event_id=?", (now, event_id))
    ingested = EventIngested(
        event_id=event_id,
        event_type=event_type,
        source=source if for_followers else UNSET,
        payload=dict(payload) if for_followers else UNSET,
    )
    tx.journal(ingested, trace_id=trace_id)
    return event_id


def _claimable(tx: Tx, source: str, at_once: int) -> list[tuple[Any, ...]]:
    now = tx.now()
    return tx.execute(
        "SELECT event_id, event_type, tier, payload_json, attempts, max_attempts, trace_id,"
        " lease_owner IS NULL AND nacked_at IS NULL"
        " FROM events WHERE source=? AND acked_at IS NULL AND dead_letter_at IS NULL"
        # One that was never leased waits for nothing: its time lies ahead only where the clock was set back.
        " AND (available_at<=? OR attempts=0) AND (lease_expires_at IS NULL OR lease_expires_at<=?)"
        " ORDER BY tier, available_at, event_id LIMIT ?",
        (source, now, now, at_once),
    ).fetchall()


class WaitingEvents(Struct, frozen=True):
    """The events of a source that are claimable now, at most 200."""

    source: str
    rows: tuple[tuple[Any, ...], ...]
    has_new: bool
    """Whether the source has an event that was never leased."""

    def of_type(self, event_type: str) -> WaitingEvents:
        """Return those of one type."""
        rows = tuple(row for row in self.rows if row[1] == event_type)
        return WaitingEvents(self.source, rows, self.has_new)


def select_waiting(tx: Tx, source: str) -> WaitingEvents:
    """Read the claimable events of ``source``, for :func:`claim_waiting` in the same transaction."""
    rows = tuple(_claimable(tx, source, _AT_ONCE))
    has_new = any(row[-1] for row in rows) or count_new(tx.connection, source) > 0
    return WaitingEvents(source, rows, has_new)


def claim_waiting(tx: Tx, waiting: WaitingEvents, *, owner: str, lease_s: float) -> list[Event]:
    """Lease every claimable event of the source for ``lease_s`` seconds.

    The lowest tier comes first, then the oldest event. Events without attempts left are dead-lettered on
    the way.
    """
    claimed: list[Event] = []
    rows = waiting.rows
    while rows:
        claimed += _lease_rows(tx, waiting.source, rows, owner, lease_s)
        rows = tuple(_claimable(tx, waiting.source, _AT_ONCE)) if len(rows) == _AT_ONCE else ()
    return claimed


def _lease_rows(
    tx: Tx, source: str, rows: Sequence[tuple[Any, ...]], owner: str, lease_s: float
) -> Iterator[Event]:
    for event_id, event_type, tier, payload, attempts, most, trace_id, _ in rows:
        if attempts >= most:
            _dead_letter(tx, event_id, "attempts used up")
            continue
        _lease(tx, event_id, owner, lease_s)
        yield Event(event_id, source, event_type, tier, parse_json(payload), attempts + 1, trace_id)


def ack_owned(tx: Tx, owner: str) -> None:
    """Mark every event that ``owner`` has leased as handled.

    A lease that ran out and that nobody else took is still the owner's.
    """
    tx.execute(
        "UPDATE events SET acked_at=?, lease_owner=NULL, lease_token=NULL, lease_expires_at=NULL"
        " WHERE lease_owner=? AND acked_at IS NULL AND dead_letter_at IS NULL",
        (tx.now(), owner),
    )


def nack_owned(tx: Tx, owner: str, error: str) -> list[str]:
    """Return every event that ``owner`` has leased; returns the ids of those that are dead letters now."""
    dead: list[str] = []
    owned = tx.execute(
        "SELECT event_id, attempts, max_attempts FROM events"
        " WHERE lease_owner=? AND acked_at IS NULL AND dead_letter_at IS NULL ORDER BY event_id",
        (owner,),
    ).fetchall()
    for event_id, attempts, most in owned:
        if attempts >= most:
            _dead_letter(tx, event_id, error)
            dead.append(event_id)
        else:
            _return(tx, event_id, attempts, error)
    return dead


def reclaim(tx: Tx, *, source: str, owner: str, lease_s: float) -> None:
    """Lease the returned events of ``source`` to ``owner`` now: a retry does not wait for the pause."""
    returned = tx.execute(
        "SELECT event_id FROM events WHERE source=? AND nacked_at IS NOT NULL"
        " AND acked_at IS NULL AND dead_letter_at IS NULL AND lease_owner IS NULL",
        (source,),
    ).fetchall()
    for (event_id,) in returned:
        _lease(tx, event_id, owner, lease_s)


def retry(tx: Tx, event_id: str) -> StoredEvent:
    """Make a dead letter claimable again, with all of its attempts.

    Raises :class:`NotFound`, and :class:`IllegalTransition` for an event that is not a dead letter.
    """
    event = load(tx.connection, event_id)
    if event.state != "dead":
        raise IllegalTransition(
            f"Event {event_id} is {event.state}; only a dead letter is retried."
        )
    tx.execute(
        "UPDATE events SET dead_letter_at=NULL, nacked_at=NULL, attempts=0, available_at=?"
        " WHERE event_id=?",
        (tx.now(), event_id),
    )
    return load(tx.connection, event_id)


def load(connection: sqlite3.Connection, event_id: str) -> StoredEvent:
    """Read the event of that id. Raises :class:`NotFound`."""
    row = connection.execute(f"{_SELECT} WHERE event_id=?", (event_id,)).fetchone()
    if row is None:
        raise NotFound(f"There is no event {event_id}; `cockpit debug events` lists them.")
    return StoredEvent(*row)


def select_recent(
    connection: sqlite3.Connection, limit: int, *, state: EventState | None = None
) -> list[StoredEvent]:
    """Read events of one state (None: of every state), newest first."""
    where = "" if state is None else f" WHERE {STATE}=?"
    values = () if state is None else (state,)
    rows = connection.execute(
        f"{_SELECT}{where} ORDER BY created_at DESC, event_id DESC LIMIT ?", (*values, limit)
    )
    return [StoredEvent(*row) for row in rows]


def count_new(connection: sqlite3.Connection, source: str) -> int:
    """Count the events of ``source`` that nobody has leased yet."""
    (count,) = connection.execute(
        "SELECT count(*) FROM events WHERE source=? AND acked_at IS NULL AND dead_letter_at IS NULL"
        " AND lease_owner IS NULL AND nacked_at IS NULL",
        (source,),
    ).fetchone()
    return int(count)


def count_waiting(connection: sqlite3.Connection, source: str) -> int:
    """Count the events of ``source`` that are neither acked nor dead-lettered."""
    (count,) = connection.execute(
        "SELECT count(*) FROM events WHERE source=? AND acked_at IS NULL"
        " AND dead_letter_at IS NULL",
        (source,),
    ).fetchone()
    return int(count)


def _lease(tx: Tx, event_id: str, owner: str, lease_s: float) -> None:
    token = tx.ids.new("lease")
    expires = format_time(tx.clock.now() + timedelta(seconds=lease_s))
    tx.execute(
        "UPDATE events SET lease_owner=?, lease_token=?, lease_expires_at=?, attempts=attempts+1"
        " WHERE event_id=?",
        (owner, token, expires, event_id),
    )


def _return(tx: Tx, event_id: str, attempts: int, error: str) -> None:
    wait = BACKOFF_S[min(attempts, len(BACKOFF_S)) - 1]
    tx.execute(
        f"UPDATE events SET nacked_at=?, last_error=?, available_at=?{_RELEASE}",  # noqa: S608 - fixed
        (tx.now(), mask(error), format_time(tx.clock.now() + timedelta(seconds=wait)), event_id),
    )


def _dead_letter(tx: Tx, event_id: str, error: str) -> None:
    tx.execute(
        "UPDATE events SET dead_letter_at=?, last_error=?, lease_owner=NULL, lease_token=NULL,"
        " lease_expires_at=NULL WHERE event_id=?",
        (tx.now(), mask(error), event_id),
    )
