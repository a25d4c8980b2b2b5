"""What hook events say of a session in the user's own terminal: its title, its state, its tokens.

See ``docs/reference/hooks.md``, sessions.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from typing import Any

from cockpit.agents.terminals.read_transcript import account_transcript
from cockpit.agents.terminals.terminal_sessions import (
    TRANSPORT,
    UNTITLED,
    TerminalAgent,
    ensure_session,
    title_from,
)
from cockpit.core.processes import is_process_alive
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.sessions import SessionCompleted, SessionWaiting
from cockpit.store.sessions import messages, sessions
from cockpit.store.sessions.sessions import Session

ANSWERED_THERE = "AnsweredThere"
"""Our own event: a question was answered in the agent's dialog, which ended its hook."""
_PERSON = "person"
_TURN_ENDS = ("Stop", ANSWERED_THERE)
_USED = ("PostToolUse", "PostToolUseFailure")
_READ = ("Stop", "SessionEnd", "UserPromptSubmit")
_LOOKED_AT = 200
_PLACE = ("terminal", "window", "socket", "transcript")


def follow_event(tx: Tx, agent: TerminalAgent, event: str, body: Mapping[str, Any]) -> Session:
    """Bring the session of ``agent`` up to date with one event of its hooks; returns it."""
    session = ensure_session(tx, agent)
    by = f"agent:{agent.agent}"
    place = body.get("place", {})
    if isinstance(place, dict) and place:
        session = _note_place(tx, session, place, by)
    if event in _READ:
        account_transcript(tx, session)
    match event:
        case "SessionStart":
            _set_waiting(tx, session, _PERSON, "no prompt yet", by)
        case "UserPromptSubmit":
            _take_prompt(tx, session, str(body.get("prompt", "")), by)
        case "Notification":
            _set_waiting(tx, session, _PERSON, str(body.get("message", ""))[:200], by)
        case _ if event in _TURN_ENDS:
            _set_waiting(tx, session, _PERSON, "the agent ended its turn", by)
        case "SessionEnd":
            ended = SessionCompleted(summary=f"ended: {body.get('reason') or 'exit'}")
            sessions.set_status(tx, session.session_id, "completed", actor=by, detail=ended)
            sessions.set_agent_process(tx, session.session_id, pid="")
        case _ if event in _USED and session.status != "running" and not _asks(tx, session):
            sessions.set_status(tx, session.session_id, "running", actor=by)
    return sessions.load(tx.connection, session.session_id)


def _note_place(tx: Tx, session: Session, place: Mapping[str, Any], by: str) -> Session:
    """Record the agent's process and terminal, where they differ from what is recorded."""
    process = str(place.get("process", ""))
    if process and process != session.pid:
        sessions.set_agent_process(tx, session.session_id, pid=process)
    target = {name: str(place[name]) for name in _PLACE if place.get(name)}
    if target and target != dict(session.target):
        return sessions.change(tx, session.session_id, actor=by, target=target)
    return session


def _take_prompt(tx: Tx, session: Session, prompt: str, by: str) -> None:
    title = title_from(prompt)
    if title and session.title.endswith(UNTITLED):
        sessions.change(tx, session.session_id, actor=by, title=title)
    if prompt.strip():
        messages.complete(tx, session_id=session.session_id, role=_PERSON, text=prompt)
    if session.status != "running":
        sessions.set_status(tx, session.session_id, "running", actor=by)


def _set_waiting(tx: Tx, session: Session, why_for: str, why: str, by: str) -> None:
    """Record that the user has the turn, unless one of its permissions waits here."""
    if not _asks(tx, session):
        detail = SessionWaiting(for_=why_for, why=why)
        sessions.set_status(tx, session.session_id, "waiting", actor=by, detail=detail)


def _asks(tx: Tx, session: Session) -> bool:
    row = tx.execute(
        "SELECT 1 FROM proposals WHERE session_id=? AND status='pending' LIMIT 1",
        (session.session_id,),
    ).fetchone()
    return row is not None


def list_dead_sessions(connection: sqlite3.Connection) -> list[str]:
    """List the sessions that are not ended though their agent's process is gone, by id."""
    return [
        session.session_id
        for session in sessions.select_of_agents(connection, _LOOKED_AT)
        if session.transport == TRANSPORT
        and session.status in ("running", "waiting")
        and session.pid
        and not is_process_alive(session.pid)
    ]


def end_dead_sessions(tx: Tx, dead: Iterable[str]) -> None:
    """End sessions whose agent's process is gone without a word."""
    for session_id in dead:
        detail = SessionCompleted(summary="ended: its process is gone")
        sessions.set_status(tx, session_id, "completed", detail=detail)
        sessions.set_agent_process(tx, session_id, pid="")
