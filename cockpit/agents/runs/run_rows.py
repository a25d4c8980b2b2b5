"""The rows of an agent's run in its session: that it started, and how the session ended with it.

See ``docs/reference/agents.md``, sessions.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from cockpit.act.dispatch_actions import LOOK_FIRST
from cockpit.core.secrets import mask
from cockpit.core.text import keep_ends
from cockpit.learn.notes.reflect import reflect
from cockpit.loop.planner.follow_session import learn_session
from cockpit.loop.runtime_settings import RunnerSettings
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.agents import RunnerStarted
from cockpit.store.journal.details.sessions import SessionCompleted, SessionFailed, SessionStopped
from cockpit.store.journal.event_types import Action
from cockpit.store.sessions import sessions
from cockpit.store.sessions.sessions import Session

LONGEST_SUMMARY = 20_000
"""Characters of a last message that are a session's result; its status may stand at either end."""
LONGEST_ERROR = 2_000


def count_runs(connection: sqlite3.Connection, session_id: str) -> int:
    """Return how often an agent was started for the session."""
    (count,) = connection.execute(
        "SELECT count(*) FROM journal WHERE session_id=? AND action=?",
        (session_id, str(Action.RUNNER_STARTED)),
    ).fetchone()
    return int(count)


def record_start(
    tx: Tx, session: Session, runner: RunnerSettings, spoken: str, unconfined: str
) -> int:
    """Journal that the agent starts, which speaks ``spoken``; returns the number of the run.

    ``unconfined`` says why it runs outside the sandbox; empty where it does not.
    """
    sessions.set_status(tx, session.session_id, "running")
    number = count_runs(tx.connection, session.session_id) + 1
    started = RunnerStarted(
        runner=runner.name,
        program=Path(runner.command[0]).name,
        format=spoken,
        task_id=session.task_id or "",
        number=number,
        sandbox=unconfined or "bubblewrap",
    )
    tx.journal(started, session_id=session.session_id)
    return number


def complete_session(tx: Tx, session_id: str, status: str, summary: str) -> None:
    """End the session with its result; what it teaches is learned."""
    words = keep_ends(mask(summary), LONGEST_SUMMARY)
    detail = SessionCompleted(status=status, summary=words)
    result = {"status": status, "summary": words}
    learn_session(tx, sessions.load(tx.connection, session_id), status)
    reflect(tx, sessions.set_status(tx, session_id, "completed", detail=detail, result=result))


def fail_session(tx: Tx, session_id: str, code: str, message: str) -> None:
    """End the session as failed."""
    words = keep_ends(mask(message), LONGEST_ERROR)
    sessions.set_status(
        tx,
        session_id,
        "failed",
        error_code=code,
        detail=SessionFailed(message=words),
        result={"status": "failed", "summary": words},
    )


def stop_session(tx: Tx, session_id: str) -> None:
    """Mark the session as stopped by the user; it can be resumed."""
    detail = SessionStopped(reason="interrupted")
    sessions.set_status(tx, session_id, "stopped", actor="person", detail=detail)


_MOST = 5
_UNENDED = """\
SELECT json_extract(began.detail_json, '$.title') FROM journal AS began
WHERE began.session_id=?1 AND began.action='runner.tool_started'
  AND lower(coalesce(json_extract(began.detail_json, '$.kind'), json_extract(began.detail_json, '$.tool')))
    NOT IN ('read', 'search', 'think', 'fetch', 'grep', 'glob')
  AND NOT EXISTS (
    SELECT 1 FROM journal AS ended WHERE ended.session_id=?1 AND ended.action='runner.tool_ended'
      AND ended.seq>began.seq
      AND json_extract(ended.detail_json, '$.call_id')=json_extract(began.detail_json, '$.call_id'))
  AND began.seq>coalesce((
    SELECT max(seq) FROM journal WHERE session_id=?1
      AND (action='session.completed'
        OR (action='runner.turn' AND json_extract(detail_json, '$.end')<>''))), 0)
ORDER BY began.seq LIMIT ?2
"""
"""Calls that began since the session or a turn of it ended last, and have no end."""


def describe_cut_off_calls(connection: sqlite3.Connection, session_id: str) -> str:
    """Return what the agent has to know of its calls that were cut off; empty where there are none."""
    titles = [str(title) for (title,) in connection.execute(_UNENDED, (session_id, _MOST))]
    if not titles:
        return ""
    calls = "\n".join(f"- {title}" for title in titles)
    return f"You were cut off while this ran:\n{calls}\n{LOOK_FIRST}"
