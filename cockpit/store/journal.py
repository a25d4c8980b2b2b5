"""The journal: one row for every step, chained by digests, written with the state it reports.

Source: records page of the design; RFC-003 §14.2 (columns), §14.3 (audit actions). The details of
each action are listed in ``docs/journal.md``.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from cockpit.store.canonical import canonical_json, text_digest


class Action(StrEnum):
    """The closed enumeration of what can happen."""

    SESSION_CREATED = "session.created"
    SESSION_RESUMED = "session.resumed"
    SESSION_WAITING = "session.waiting"
    SESSION_RUNNING = "session.running"
    SESSION_COMPLETED = "session.completed"
    SESSION_FAILED = "session.failed"
    SESSION_STOPPED = "session.stopped"
    SESSION_CHANGED = "session.changed"
    MESSAGE_STARTED = "message.started"
    MESSAGE_DELTA = "message.delta"
    MESSAGE_COMPLETED = "message.completed"
    WAVE_CREATED = "wave.created"
    WAVE_STARTED = "wave.started"
    WAVE_OBSERVED = "wave.observed"
    WAVE_ORIENTED = "wave.oriented"
    WAVE_DECIDED = "wave.decided"
    WAVE_ACTED = "wave.acted"
    WAVE_COMPLETED = "wave.completed"
    WAVE_FAILED = "wave.failed"
    WAVE_REENTERED = "wave.reentered"
    CONTEXT_REQUESTED = "context.requested"
    CONTEXT_FETCHED = "context.fetched"
    CONTEXT_REFUSED = "context.refused"
    PACKET_COMPILED = "orientation.packet.compiled"
    PACKET_VERIFIED = "orientation.packet.replay_verified"
    MODEL_CALLED = "model.called"
    MODEL_RETRIED = "model.retried"
    MODEL_COMPLETED = "model.completed"
    MODEL_FAILED = "model.failed"
    MODEL_MALFORMED_CALL = "model.malformed_call"
    PLAN_COMMITTED = "plan.committed"
    PROPOSAL_CREATED = "proposal.created"
    PROPOSAL_APPROVED = "proposal.approved"
    PROPOSAL_REJECTED = "proposal.rejected"
    PROPOSAL_DISCUSSED = "proposal.discussed"
    PROPOSAL_EXPIRED = "proposal.expired"
    ACTION_QUEUED = "action.queued"
    ACTION_DISPATCHED = "action.dispatched"
    ACTION_CONFIRMED = "action.confirmed"
    ACTION_RETRIED = "action.retried"
    ACTION_FAILED = "action.failed"
    ACTION_UNCERTAIN = "action.uncertain"
    ACTION_PROBED = "action.probed"
    ACTION_REFUSED = "action.refused"
    EVENT_INGESTED = "event.ingested"
    EVENT_LEASED = "event.leased"
    EVENT_ACKED = "event.acked"
    EVENT_NACKED = "event.nacked"
    EVENT_DEAD_LETTERED = "event.dead_lettered"
    PROFILE_CREATED = "profile.created"
    STORE_MIGRATED = "store.migrated"


@dataclass(frozen=True, slots=True)
class Row:
    """One row. ``digest`` is empty for a provisional row (``message.delta``)."""

    seq: int
    at: str
    trace_id: str
    session_id: str
    wave_id: str
    packet_id: str
    profile_id: str
    profile_version: int | None
    actor: str
    action: str
    result: str
    latency_ms: int | None
    error_code: str
    detail: Mapping[str, Any]
    digest: str

    def line(self) -> str:
        """The row as one line of canonical JSON: what ``stream-json`` and exports print."""
        names = COLUMNS[:-2]
        body: dict[str, Any] = {name: getattr(self, name) for name in names}
        return canonical_json({**body, "detail": dict(self.detail), "digest": self.digest})


COLUMNS = (
    "seq",
    "at",
    "trace_id",
    "session_id",
    "wave_id",
    "packet_id",
    "profile_id",
    "profile_version",
    "actor",
    "action",
    "result",
    "latency_ms",
    "error_code",
    "detail_json",
    "digest",
)
SELECT = f"SELECT {', '.join(COLUMNS)} FROM journal"  # noqa: S608 - fixed column names
_INSERT = f"INSERT INTO journal({', '.join(COLUMNS)}) VALUES ({','.join('?' * len(COLUMNS))})"  # noqa: S608


def append(connection: sqlite3.Connection, values: tuple[Any, ...]) -> int:
    """Append one sealed row inside the caller's transaction; returns its seq.

    ``values`` are the columns from ``at`` to ``detail_json``, in order.
    """
    last, previous = connection.execute("SELECT seq, digest FROM journal_head").fetchone()
    seq = last + 1
    digest = _chain(previous, (seq, *values))
    connection.execute(_INSERT, (seq, *values, digest))
    connection.execute("UPDATE journal_head SET seq=?, digest=?, sealed=sealed+1", (seq, digest))
    return int(seq)


def append_provisional(connection: sqlite3.Connection, values: tuple[Any, ...]) -> int:
    """Append a row outside the chain: a fragment of streamed text, folded away later."""
    (last,) = connection.execute("SELECT seq FROM journal_head").fetchone()
    seq = last + 1
    connection.execute(_INSERT, (seq, *values, None))
    connection.execute("UPDATE journal_head SET seq=?", (seq,))
    return int(seq)


def fold(connection: sqlite3.Connection, session_id: str, message_id: str) -> None:
    """Remove the provisional rows of one message; its completed row carries the text."""
    connection.execute(
        "DELETE FROM journal WHERE digest IS NULL AND session_id=?"
        " AND json_extract(detail_json, '$.message_id')=?",
        (session_id, message_id),
    )


def provisional_text(connection: sqlite3.Connection, session_id: str, message_id: str) -> str:
    """What a message had streamed so far: what a crash left of it."""
    rows = connection.execute(
        "SELECT json_extract(detail_json, '$.text') FROM journal WHERE digest IS NULL"
        " AND session_id=? AND json_extract(detail_json, '$.message_id')=? ORDER BY seq",
        (session_id, message_id),
    )
    return "".join(text for (text,) in rows)


def read_row(values: tuple[Any, ...]) -> Row:
    """A :class:`Row` from the columns of :data:`SELECT`."""
    head: tuple[Any, ...] = values[:-2]
    named = dict(zip(COLUMNS, head, strict=False))
    return Row(**named, detail=json.loads(values[-2]), digest=values[-1] or "")


def rows(
    connection: sqlite3.Connection,
    *,
    after: int = 0,
    session_id: str | None = None,
    limit: int = 1000,
) -> list[Row]:
    """Rows with seq greater than ``after``, in order, at most ``limit``."""
    if session_id is None:
        found = connection.execute(f"{SELECT} WHERE seq>? ORDER BY seq LIMIT ?", (after, limit))
    else:
        found = connection.execute(
            f"{SELECT} WHERE session_id=? AND seq>? ORDER BY seq LIMIT ?",
            (session_id, after, limit),
        )
    return [read_row(values) for values in found]


def last_seq(connection: sqlite3.Connection) -> int:
    """The newest seq ever given; 0 in an empty journal."""
    return int(connection.execute("SELECT seq FROM journal_head").fetchone()[0])


@dataclass(frozen=True, slots=True)
class Verdict:
    """What verification found: ``broken`` names the first seq at fault and why, or is None."""

    rows: int
    broken: tuple[int, str] | None

    @property
    def ok(self) -> bool:
        return self.broken is None


def verify(connection: sqlite3.Connection) -> Verdict:
    """Walk the whole chain and compare it with the head.

    Finds any sealed row changed, removed or inserted, the last one included. Provisional rows are
    only allowed for messages that are still streaming.
    """
    head_seq, head_digest, sealed = connection.execute(
        "SELECT seq, digest, sealed FROM journal_head"
    ).fetchone()
    previous, counted = "", 0
    for values in _all(connection):
        seq, digest, action = values[0], values[-1], values[9]
        if digest is None:
            if action != Action.MESSAGE_DELTA:
                return Verdict(counted, (seq, f"row {seq} ({action}) has no digest"))
            continue
        counted += 1
        if _chain(previous, values[:-1]) != digest:
            return Verdict(
                counted,
                (
                    seq,
                    f"row {seq} does not follow from the row before it: changed, removed or inserted",
                ),
            )
        previous = digest
        if seq > head_seq:
            return Verdict(counted, (seq, f"row {seq} stands after the recorded end {head_seq}"))
    if previous != head_digest or counted != sealed:
        return Verdict(
            counted,
            (head_seq, f"the journal ends early: {sealed} rows were written, {counted} are there"),
        )
    stray = connection.execute(
        "SELECT d.seq FROM journal d JOIN journal c ON c.session_id=d.session_id"
        " AND c.action='message.completed' AND json_extract(c.detail_json,'$.message_id')="
        "json_extract(d.detail_json,'$.message_id') WHERE d.digest IS NULL LIMIT 1"
    ).fetchone()
    if stray is not None:
        return Verdict(counted, (stray[0], f"row {stray[0]} is a fragment of a finished message"))
    return Verdict(counted, None)


def _all(connection: sqlite3.Connection) -> Iterator[tuple[Any, ...]]:
    yield from connection.execute(f"{SELECT} ORDER BY seq")


def _chain(previous: str, values: tuple[Any, ...]) -> str:
    return text_digest(previous + "\n" + canonical_json(list(values)))
