"""The files that agents read for a task: external ones by the journal, cockpit's own by their last packets.

See ``docs/reference/agents.md``, what was read.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from cockpit.store.context import facts, packets
from cockpit.store.journal.details.agent_turns import RunnerFileRead
from cockpit.store.journal.event_types import Action
from cockpit.store.sessions.sessions import RUNNER_PREFIX

_MOST_SESSIONS = 50
_MOST_ROWS = 400
"""Rows of one session that are looked at, the newest first."""
_MOST_PACKETS = 5
"""Newest sessions of cockpit's own agent whose last packets are looked at."""
VERSION_LENGTH = 16
"""Characters of a SHA-256 that name a version, as in the journal's rows."""


class SeenFile(Struct, frozen=True):
    """A part of a file that an agent read."""

    path: str
    """From the top of its worktree."""
    first: int
    last: int
    version: str
    """The beginning of the SHA-256 that the file had."""
    agent: str
    """An external agent's name, or the role or task type of a session of cockpit's own agent."""
    session_id: str


def select_seen(connection: sqlite3.Connection, task_id: str) -> list[SeenFile]:
    """Return what agents read in the newest sessions of a task, the last read file first.

    Of cockpit's own agent that is what the session's last packet has in full. Only the parts of the version
    that was read last count; those that touch or overlap are one.
    """
    rows = connection.execute(
        "SELECT session_id, agent, model, role, task_type FROM sessions WHERE task_id=?"
        " ORDER BY rowid DESC LIMIT ?",
        (task_id, _MOST_SESSIONS),
    ).fetchall()
    parts: dict[str, list[SeenFile]] = {}
    packets_read = 0
    for session_id, agent, model, role, task_type in rows:
        runner = str(model).startswith(RUNNER_PREFIX)
        read = list(_select_reported(connection, session_id, agent or str(model).partition(":")[2]))
        if not agent and not runner and packets_read < _MOST_PACKETS:
            packets_read += 1
            read += _select_packed(connection, session_id, str(role or task_type).replace("_", " "))
        for part in read:
            same = parts.setdefault(part.path, [])
            if not same or same[0].version == part.version:
                same.append(part)
    return [joined for same in parts.values() for joined in _join_parts(same)]


def _select_reported(
    connection: sqlite3.Connection, session_id: str, name: str
) -> Iterator[SeenFile]:
    """Yield what an external agent read, the newest first."""
    for body in _select_bodies(connection, session_id):
        yield SeenFile(
            str(body["path"]),
            int(body["first"]),
            int(body["last"]),
            str(body["version"]),
            name,
            session_id,
        )


def _select_packed(
    connection: sqlite3.Connection, session_id: str, name: str
) -> Iterator[SeenFile]:
    """Yield the parts of files that the session's last packet has in full, the newest first."""
    stored = packets.find_before(connection, session_id, 2**31)
    if stored is None:
        return
    shown = {
        fact_id
        for fact_id, (_, entry) in stored.packet.in_force().items()
        if packets.detail_of(entry) == 0
    }
    rows = connection.execute(
        "SELECT fact_id FROM session_facts WHERE session_id=? AND source_type='file'"
        " AND superseded_at IS NULL ORDER BY ordinal DESC, position",
        (session_id,),
    )
    ids = [str(row[0]) for row in rows if row[0] in shown]
    provenances = facts.load_provenances(connection, "file", ids)
    for fact_id in ids:
        provenance = provenances.get(fact_id, {})
        lines = provenance.get("lines")
        is_whole = provenance.get("level", "full") == "full" and not provenance.get("by_reference")
        if is_whole and isinstance(lines, list) and len(lines) == 2 and lines[0] >= 1:
            version = str(provenance.get("sha256", ""))[:VERSION_LENGTH]
            path = str(provenance.get("path", ""))
            yield SeenFile(path, int(lines[0]), int(lines[1]), version, name, session_id)


def _join_parts(parts: list[SeenFile]) -> list[SeenFile]:
    """Join parts of one file that touch or overlap, in the order of their lines."""
    joined: list[SeenFile] = []
    for part in sorted(parts, key=lambda each: (each.first, each.last)):
        if joined and part.first <= joined[-1].last + 1:
            joined[-1] = replace(joined[-1], last=max(joined[-1].last, part.last))
        else:
            joined.append(part)
    return joined


def has_seen(connection: sqlite3.Connection, session_id: str, seen: RunnerFileRead) -> bool:
    """Whether the session's journal has this part of this version among its newest reads."""
    wanted = (seen.path, seen.version, seen.first, seen.last)
    names = ("path", "version", "first", "last")
    bodies = _select_bodies(connection, session_id)
    return any(tuple(body[name] for name in names) == wanted for body in bodies)


def _select_bodies(connection: sqlite3.Connection, session_id: str) -> Iterator[dict[str, Any]]:
    """Yield the session's newest reads, the newest first."""
    rows = connection.execute(
        "SELECT detail_json FROM journal WHERE session_id=? AND action=? ORDER BY seq DESC LIMIT ?",
        (session_id, str(Action.RUNNER_FILE_READ), _MOST_ROWS),
    )
    return (json.loads(text) for (text,) in rows)
