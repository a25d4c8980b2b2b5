"""The state of a session: one of seven words, decided here for every screen, list and document.

See ``docs/reference/screen.md``, signs.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection

from cockpit.store.sessions.sessions import Session

STATES = ("running", "waiting", "paused", "stopped", "done", "blocked", "failed")
"""``waiting``: for the user. ``paused``: by a limit or the machine, and a message resumes it."""

_STATES = {
    "completed": "done",
    "limit": "paused",
    "needs_answer": "waiting",
    "expired": "waiting",
}
"""Statuses and outcomes that are not states themselves."""


def session_state(status: str, outcome: str = "", *, asks: bool = False) -> str:
    """Return the state of a session.

    ``outcome`` is how a completed one ended, or why a waiting one waits. One that ``asks`` has a pending
    proposal: it waits for the user, whether or not a process runs it.
    """
    if asks:
        return "waiting"
    is_paused = (status, outcome) == ("waiting", "paused")
    ended = outcome if outcome and (status == "completed" or is_paused) else status
    state = _STATES.get(ended, ended)
    return state if state in STATES else "blocked"


def state_of(session: Session, asking: Collection[str]) -> str:
    """Return the state of a session; ``asking`` is :func:`select_asking`."""
    outcome = str(session.result.get("status", ""))
    return session_state(session.status, outcome, asks=session.session_id in asking)


def select_asking(connection: sqlite3.Connection) -> frozenset[str]:
    """Return the sessions that have a pending proposal."""
    rows = connection.execute(
        "SELECT DISTINCT session_id FROM proposals WHERE status='pending' AND session_id IS NOT NULL"
    )
    return frozenset(session_id for (session_id,) in rows)
