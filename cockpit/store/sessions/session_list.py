"""Sessions as a list shows them: the newest of them and the sums of all, at the same cost in any store."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any

import msgspec

from cockpit.store.journal import journal
from cockpit.store.journal.journal import Row


class Listed(msgspec.Struct, frozen=True):
    """One session with the rows that say how it is now."""

    session_id: str
    created_at: str
    task_type: str
    title: str
    words: str
    model: str
    policy: str
    role: str
    task_id: str
    agent: str
    branch: str
    in_chain: bool
    live: bool
    tokens: int
    cost_usd: float | None
    wave: int
    phase: str
    """The phase of its newest wave, as ``wave_runs`` has it; empty before the first wave."""
    entered: Row | None
    """The row with which it entered its status; None for a session that never left ``running``."""
    changed_seq: int
    """The newest row that changed what a list shows of it."""
    changed_files: tuple[str, ...]
    """The files that its agent's hooks reported as changed, the last at the end; none of an ended one."""


class Totals(msgspec.Struct, frozen=True):
    """The sessions outside chains in one status; ``cost_usd`` is None where no cost is known."""

    sessions: int
    cost_usd: float | None


_COLUMNS = (
    "session_id, created_at, task_type, title, words, model, policy, role, coalesce(task_id, ''),"
    " agent, branch, chain_id IS NOT NULL, status IN ('running','waiting'), input_tokens+output_tokens,"
    " cost_usd, status"
)
_LIVE = (
    f"SELECT {_COLUMNS} FROM sessions WHERE chain_id IS NULL AND status IN ('running','waiting')"  # noqa: S608
    " ORDER BY updated_at DESC LIMIT ?"
)
_ENDED = (
    f"SELECT {_COLUMNS} FROM sessions WHERE chain_id IS NULL"  # noqa: S608 - fixed columns
    " AND status NOT IN ('running','waiting') ORDER BY updated_at DESC LIMIT ?"
)
_ONE = f"SELECT {_COLUMNS} FROM sessions WHERE session_id=?"  # noqa: S608 - fixed columns
# The unary plus keeps SQLite on the session's own rows, of which the last few suffice.
_ENTERED = (
    f"{journal.SELECT} WHERE session_id=? AND +action IN ('session.waiting','session.running',"
    "'session.resumed','session.completed','session.failed','session.stopped')"
    " ORDER BY seq DESC LIMIT 1"
)
_CHANGED = (
    "SELECT seq FROM journal WHERE session_id=? AND (+action GLOB 'session.*'"
    " OR +action GLOB 'wave.*' OR +action='model.completed') ORDER BY seq DESC LIMIT 1"
)
_FILES = (
    "SELECT json_extract(detail_json, '$.path') FROM journal"
    " WHERE session_id=? AND +action='agent.hook' ORDER BY seq DESC LIMIT ?"
)
MOST_FILES = 100
"""Reports of an agent's hooks that are looked through for the files that it changed."""
_WAVE = "SELECT ordinal, phase FROM wave_runs WHERE session_id=? ORDER BY ordinal DESC LIMIT 1"


def select_listed(
    connection: sqlite3.Connection, limit: int, more: Iterable[str] = ()
) -> list[Listed]:
    """Read the ``limit`` live sessions that changed last, as many that ended, and those of ``more``.

    Sessions of chains are only in ``more``. The order is that of their last change, the newest last.
    """
    rows = list(connection.execute(_LIVE, (limit,)))
    rows += connection.execute(_ENDED, (max(0, limit - len(rows)),))
    ids = {row[0] for row in rows}
    for session_id in more:
        if session_id not in ids:
            ids.add(session_id)
            rows += connection.execute(_ONE, (session_id,))
    listed = [_read(connection, row) for row in rows]
    return sorted(listed, key=lambda each: each.changed_seq)


def read_totals(connection: sqlite3.Connection) -> dict[str, Totals]:
    """Return the sums of the sessions outside chains by status; ``blocked`` and ``limit`` for
    completed ones that ended so."""
    rows = connection.execute(
        "SELECT status, sessions, priced, cost_usd FROM session_totals WHERE sessions>0"
    )
    return {
        status: Totals(sessions, cost_usd if priced else None)
        for status, sessions, priced, cost_usd in rows
    }


def is_in_chain(connection: sqlite3.Connection, session_id: str) -> bool:
    """Whether a session works on a task of a chain."""
    row = connection.execute(
        "SELECT chain_id IS NOT NULL FROM sessions WHERE session_id=?", (session_id,)
    ).fetchone()
    return bool(row and row[0])


def _read(connection: sqlite3.Connection, row: tuple[Any, ...]) -> Listed:
    *columns, status = row
    session_id = columns[0]
    entered = None
    if status != "running":
        values = connection.execute(_ENTERED, (session_id,)).fetchone()
        entered = None if values is None else journal.read_row(values)
    changed = connection.execute(_CHANGED, (session_id,)).fetchone()
    wave = connection.execute(_WAVE, (session_id,)).fetchone()
    ordinal, phase = wave or (0, "")
    columns += [ordinal, phase, entered, changed[0] if changed else 0, ()]
    listed = Listed(*columns)
    if not (listed.agent and listed.live):
        return listed
    paths = [path for (path,) in connection.execute(_FILES, (session_id, MOST_FILES)) if path]
    return msgspec.structs.replace(listed, changed_files=tuple(dict.fromkeys(reversed(paths))))
