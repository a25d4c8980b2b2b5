"""The end of a session about a task: the task's status and its handoff, in the same transaction.

A role's session is one step of a task; its coordinator ends the task instead. See
``docs/reference/backlog.md``, status.
"""

from __future__ import annotations

from cockpit.backlog import service
from cockpit.backlog.user_decision import user_decision
from cockpit.core.errors import NotFound
from cockpit.core.text import pluralize
from cockpit.store.backlog import handoffs, tasks
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions.sessions import EXTERNAL_AGENT, Session

_BY = "engine"
_ENDINGS = {"done": ("done", "PASS"), "blocked": ("blocked", "BLOCKED")}
"""The task's status and its handoff's, by the session's own result; after any other it stays in progress."""


def record_session_end(tx: Tx, session: Session) -> None:
    """Set the status and the handoff of the task that a completed session was about.

    A status that the user has set meanwhile stays.
    """
    ending = _ENDINGS.get(str(session.result.get("status", "")))
    if ending is None or session.task_id is None or session.role:
        return
    if session.task_type == EXTERNAL_AGENT:
        return
    try:
        task = tasks.load(tx.connection, session.task_id)
        decision = user_decision(tx.connection, session.task_id)
    except NotFound:
        return  # the session names a task of another project
    if decision:
        return
    status, verdict = ending
    summary = str(session.result.get("summary", "")).strip()
    summary = (summary or f"The session ended {status} and said nothing.")[: handoffs.MOST_SUMMARY]
    wip = task.wip or {}
    files = [str(path) for path in wip.get("files_modified", ())][: handoffs.MOST_FILES]
    handoffs.set_handoff(
        tx,
        task.task_id,
        verdict,
        summary,
        files,
        _details(session, len(files)),
        by=_BY,
        session_id=session.session_id,
    )
    service.set_status(
        tx,
        task.task_id,
        status,
        summary if status == "blocked" else None,
        by=_BY,
        session_id=session.session_id,
    )


def _details(session: Session, file_count: int) -> str:
    return (
        f"Session {session.session_id} ({session.task_type}, {session.model}), "
        f"{pluralize(file_count, 'file')} modified. `cockpit sessions {session.session_id}` shows it."
    )
