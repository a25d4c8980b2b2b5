"""Messages of the user, the agent and cockpit itself.

Specified in ``docs/reference/loop.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from cockpit.core.secrets import mask
from cockpit.store.db.transaction import Tx
from cockpit.store.journal import fragments
from cockpit.store.journal.details.sessions import MessageCompleted, MessageDelta, MessageStarted


class Message(Struct, frozen=True):
    """One whole message."""

    message_id: str
    session_id: str
    wave_id: str | None
    role: str
    """``person`` (the user), ``agent`` or ``notice``."""
    text: str
    interrupted: bool
    created_at: str


def start(tx: Tx, *, session_id: str, wave_id: str, message_id: str) -> None:
    """Journal that the agent starts a message; its text follows as fragments.

    Starting the same message again (a wave that re-enters after a crash) drops the fragments so
    far.
    """
    fragments.fold(tx.connection, session_id, message_id)
    tx.journal(
        MessageStarted(message_id=message_id, role="agent"),
        actor="agent",
        session_id=session_id,
        wave_id=wave_id,
    )


def append_delta(
    tx: Tx, *, session_id: str, wave_id: str, message_id: str, text: str, number: int
) -> None:
    """Journal a fragment of a message that is still streaming.

    A secret that arrives in pieces is masked as soon as its last piece completes it: the fragments
    stored before are cut, so that together they never contain it.
    """
    text = _joined(tx, session_id, message_id, mask(text))
    tx.journal(
        MessageDelta(message_id=message_id, text=text, n=number),
        actor="agent",
        session_id=session_id,
        wave_id=wave_id,
    )


_LOOK_BACK = 64
"""Fragments that a secret may be spread over; at most ten arrive in a second."""


def _joined(tx: Tx, session_id: str, message_id: str, text: str) -> str:
    """Return what to store of a fragment so that the line it continues is masked as a whole."""
    before = fragments.fragments(tx.connection, session_id, message_id, _LOOK_BACK)
    line = "".join(stored for _, stored in before).rpartition("\n")[2]
    safe = mask(line + text)
    if safe == line + text:
        return text
    unchanged = next(
        (n for n, (a, b) in enumerate(zip(line, safe, strict=False)) if a != b), len(safe)
    )
    unchanged = min(unchanged, len(line))
    surplus = len(line) - unchanged
    for seq, stored in reversed(before):
        if surplus <= 0:
            break
        fragments.cut_fragment(tx.connection, seq, stored[: max(0, len(stored) - surplus)])
        surplus -= len(stored)
    return safe[unchanged:]


def complete(
    tx: Tx,
    *,
    session_id: str,
    role: str,
    text: str,
    wave_id: str = "",
    message_id: str = "",
    interrupted: bool = False,
    has_fragments: bool = True,
) -> str:
    """Store a whole message and drop its fragments; returns its id.

    Idempotent by ``message_id``; without one a new id is made. ``has_fragments`` False: none of it was
    journalled while it streamed.
    """
    identity = message_id or tx.ids.new("m")
    text = mask(text)
    added = tx.execute(
        "INSERT INTO messages VALUES (?,?,?,?,?,?,?) ON CONFLICT(message_id) DO NOTHING",
        (identity, session_id, wave_id or None, role, text, int(interrupted), tx.now()),
    )
    if added.rowcount != 1:
        return identity
    tx.journal(
        MessageCompleted(
            message_id=identity,
            role=role,
            text=text,
            interrupted=interrupted,
        ),
        actor={"person": "person", "agent": "agent"}.get(role, "engine"),
        session_id=session_id,
        wave_id=wave_id,
    )
    if has_fragments and message_id:
        fragments.fold(tx.connection, session_id, identity)
    return identity


def select_for_session(
    connection: sqlite3.Connection, session_id: str, limit: int = 10_000, role: str | None = None
) -> list[Message]:
    """Read a session's messages (of one ``role``), oldest first."""
    rows = connection.execute(
        "SELECT message_id, session_id, wave_id, role, text, interrupted, created_at FROM messages"
        " WHERE session_id=? AND role=coalesce(?, role) ORDER BY created_at, rowid LIMIT ?",
        (session_id, role, limit),
    )
    return _read(rows)


def select_latest(connection: sqlite3.Connection, session_id: str, limit: int) -> list[Message]:
    """Read a session's last messages, oldest first."""
    rows = connection.execute(
        "SELECT message_id, session_id, wave_id, role, text, interrupted, created_at FROM messages"
        " WHERE session_id=? ORDER BY created_at DESC, rowid DESC LIMIT ?",
        (session_id, limit),
    )
    return _read(rows)[::-1]


def _read(rows: Iterable[tuple[Any, ...]]) -> list[Message]:
    return [
        Message(identity, session, wave, role, text, bool(cut), at)
        for identity, session, wave, role, text, cut, at in rows
    ]
