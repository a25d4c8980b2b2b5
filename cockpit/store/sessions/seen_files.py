"""The files that external agents read for a task, from the journal of its sessions.

See ``docs/reference/agents.md``, what was read.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from cockpit.store.journal.details.agent_turns import RunnerFileSeen
from cockpit.store.journal.event_types import Action

_SEEN = (Action.RUNNER_FILE_SEEN, Action.RUNNER_FILE_READ)
_MOST_SESSIONS = 50
_MOST_ROWS = 400
"""Rows of one session that are looked at, the newest first."""


@dataclass(frozen=True, slots=True)
class SeenFile:
    """A part of a file that an external agent read."""

    path: str
    """From the top of its worktree."""
    first: int
    last: int
    version: str
    """The beginning of the SHA-256 that the file had."""
    agent: str
    session_id: str


def select_seen(connection: sqlite3.Connection, task_id: str) -> list[SeenFile]:
    """Return what external agents read in the newest sessions of a task, the last read file first.

    Only the parts of the version that was read last count; those that touch or overlap are one.
    """
    rows = connection.execute(
        "SELECT session_id, agent, model FROM sessions WHERE task_id=? ORDER BY rowid DESC LIMIT ?",
        (task_id, _MOST_SESSIONS),
    ).fetchall()
    parts: dict[str, list[SeenFile]] = {}
    for session_id, agent, model in rows:
        name = agent or str(model).partition(":")[2]
        for body in _select_bodies(connection, session_id, _SEEN):
            part = SeenFile(
                str(body["path"]),
                int(body["first"]),
                int(body["last"]),
                str(body["version"]),
                name,
                session_id,
            )
            same = parts.setdefault(part.path, [])
            if not same or same[0].version == part.version:
                same.append(part)
    return [joined for same in parts.values() for joined in _join_parts(same)]


def _join_parts(parts: list[SeenFile]) -> list[SeenFile]:
    """Join parts of one file that touch or overlap, in the order of their lines."""
    joined: list[SeenFile] = []
    for part in sorted(parts, key=lambda each: (each.first, each.last)):
        if joined and part.first <= joined[-1].last + 1:
            joined[-1] = replace(joined[-1], last=max(joined[-1].last, part.last))
        else:
            joined.append(part)
    return joined


def has_seen(connection: sqlite3.Connection, session_id: str, seen: RunnerFileSeen) -> bool:
    """Whether the session's journal has this part of this version among its newest reads."""
    wanted = (seen.path, seen.version, seen.first, seen.last)
    names = ("path", "version", "first", "last")
    bodies = _select_bodies(connection, session_id, _SEEN)
    return any(tuple(body[name] for name in names) == wanted for body in bodies)


def _select_bodies(
    connection: sqlite3.Connection, session_id: str, actions: tuple[Action, Action]
) -> Iterator[dict[str, Any]]:
    """Yield the details of a session's newest rows of two kinds, the newest first."""
    rows = connection.execute(
        "SELECT detail_json FROM journal WHERE session_id=? AND action IN (?,?)"
        " ORDER BY seq DESC LIMIT ?",
        (session_id, *actions, _MOST_ROWS),
    )
    return (json.loads(text) for (text,) in rows)
