"""Durable events: ingested → claimable → leased → acked | nacked → … | dead-lettered.

One lease owner at a time; an expired lease makes the event claimable again; a wrong or expired
token cannot acknowledge it. Specified in ``docs/reference/kernel.md``.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from cockpit.core.canonical_json import canonical_json
from cockpit.core.clock import format_time
from cockpit.core.errors import Stale
from cockpit.core.secrets import mask, mask_value
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.sessions import (
    EventAcked,
    EventDeadLettered,
    EventIngested,
    EventLeased,
    EventNacked,
    QueuedEvent,
)

BACKOFF_S = (1, 5, 30, 120, 600)
"""Seconds until a nacked event is claimable again, by attempt."""


@dataclass(frozen=True, slots=True)
class Event:
    """One ingested event."""

    event_id: str
    source: str
    event_type: str
    tier: int
    """Lower tiers are claimed first."""
    payload: Mapping[str, Any]
    attempts: int
    trace_id: str
    lease_token: str = ""
    """Empty unless the caller holds the lease."""


def ingest(
    tx: Tx,
    *,
    source: str,
    source_event_id: str,
    event_type: str,
    payload: Mapping[str, Any],
    tier: int = 1,
    trace_id: str = "",
) -> str:
    """Store an event once per (source, source_event_id); returns its id, new or not."""
    row = tx.execute(
        "SELECT event_id FROM events WHERE source=? AND source_event_id=?",
        (source, source_event_id),
    ).fetchone()
    if row is not None:
        return str(row[0])
    event_id = tx.ids.new("e")
    now = tx.now()
    tx.execute(
        "INSERT INTO events(event_id, source, source_event_id, event_type, tier, payload_json,"
        " created_at, available_at, trace_id) VALUES (?,?,?,?,?,?,?,?,?)",
        (
            event_id,
            source,
            source_event_id,
            event_type,
            tier,
            canonical_json(mask_value(dict(payload))),
            now,
            now,
            trace_id,
        ),
    )
    _journal(tx, EventIngested, event_id, event_type, trace_id)
    return event_id


def claim(tx: Tx, *, source: str, owner: str, lease_s: float) -> Event | None:
    """Lease the first claimable event of ``source``, or return None.

    The lowest tier comes first, then the oldest event. Events without attempts left are
    dead-lettered on the way. The lease holds for ``lease_s`` seconds.
    """
    while True:
        now = tx.now()
        row = tx.execute(
            "SELECT event_id, event_type, tier, payload_json, attempts, max_attempts, trace_id"
            " FROM events WHERE source=? AND acked_at IS NULL AND dead_letter_at IS NULL"
            " AND available_at<=? AND (lease_expires_at IS NULL OR lease_expires_at<=?)"
            " ORDER BY tier, available_at, event_id LIMIT 1",
            (source, now, now),
        ).fetchone()
        if row is None:
            return None
        event_id, event_type, tier, payload, attempts, most, trace_id = row
        if attempts >= most:
            _dead_letter(tx, event_id, event_type, trace_id, "attempts used up")
            continue
        token = tx.ids.new("lease")
        expires = format_time(tx.clock.now() + timedelta(seconds=lease_s))
        tx.execute(
            "UPDATE events SET lease_owner=?, lease_token=?, lease_expires_at=?, attempts=attempts+1"
            " WHERE event_id=?",
            (owner, token, expires, event_id),
        )
        _journal(tx, EventLeased, event_id, event_type, trace_id)
        return Event(
            event_id, source, event_type, tier, json.loads(payload), attempts + 1, trace_id, token
        )


def ack(tx: Tx, event_id: str, lease_token: str) -> None:
    """Mark the event as handled. Raises :class:`Stale` for a wrong or expired lease."""
    event_type, trace_id, _, _ = _held(tx, event_id, lease_token)
    tx.execute(
        "UPDATE events SET acked_at=?, lease_owner=NULL, lease_token=NULL, lease_expires_at=NULL"
        " WHERE event_id=?",
        (tx.now(), event_id),
    )
    _journal(tx, EventAcked, event_id, event_type, trace_id)


def nack(tx: Tx, event_id: str, lease_token: str, error: str) -> None:
    """Return an event that could not be handled; it is claimable again after a pause.

    Without attempts left it is dead-lettered. Raises :class:`Stale` for a wrong or expired lease.
    """
    event_type, trace_id, attempts, most = _held(tx, event_id, lease_token)
    if attempts >= most:
        _dead_letter(tx, event_id, event_type, trace_id, error)
        return
    wait = BACKOFF_S[min(attempts, len(BACKOFF_S)) - 1]
    tx.execute(
        "UPDATE events SET nacked_at=?, last_error=?, available_at=?, lease_owner=NULL,"
        " lease_token=NULL, lease_expires_at=NULL WHERE event_id=?",
        (tx.now(), mask(error), format_time(tx.clock.now() + timedelta(seconds=wait)), event_id),
    )
    _journal(tx, EventNacked, event_id, event_type, trace_id)


def count_waiting(connection: sqlite3.Connection, source: str) -> int:
    """Count the events of ``source`` that are neither acked nor dead-lettered."""
    (count,) = connection.execute(
        "SELECT count(*) FROM events WHERE source=? AND acked_at IS NULL"
        " AND dead_letter_at IS NULL",
        (source,),
    ).fetchone()
    return int(count)


def _held(tx: Tx, event_id: str, lease_token: str) -> tuple[str, str, int, int]:
    row = tx.execute(
        "SELECT event_type, trace_id, attempts, max_attempts FROM events WHERE event_id=?"
        " AND lease_token=? AND lease_expires_at>? AND acked_at IS NULL AND dead_letter_at IS NULL",
        (event_id, lease_token, tx.now()),
    ).fetchone()
    if row is None:
        raise Stale(f"The lease on event {event_id} has expired or belongs to another process.")
    event_type, trace_id, attempts, most = row
    return event_type, trace_id, attempts, most


def _dead_letter(tx: Tx, event_id: str, event_type: str, trace_id: str, error: str) -> None:
    tx.execute(
        "UPDATE events SET dead_letter_at=?, last_error=?, lease_owner=NULL, lease_token=NULL,"
        " lease_expires_at=NULL WHERE event_id=?",
        (tx.now(), mask(error), event_id),
    )
    _journal(tx, EventDeadLettered, event_id, event_type, trace_id)


def _journal(
    tx: Tx, kind: type[QueuedEvent], event_id: str, event_type: str, trace_id: str
) -> None:
    tx.journal(kind(event_id=event_id, event_type=event_type), trace_id=trace_id)
