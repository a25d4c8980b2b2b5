"""The session by which a run on another machine is seen here: on the board, in the queue, in the header.

It has no waves: the worker's own journal has those. See ``docs/reference/remote-workers.md``.
"""

from __future__ import annotations

from cockpit.core.project_paths import ProjectPaths
from cockpit.loop.runtime_settings import DEFAULT_BUDGET
from cockpit.store.backlog import tasks
from cockpit.store.chains import task_runs
from cockpit.store.chains.task_runs import Step
from cockpit.store.context import profiles
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.sessions import SessionCompleted, SessionFailed
from cockpit.store.sessions import sessions

TRANSPORT = "nats"
_OPEN = ("running", "waiting")


def open_session(tx: Tx, place: ProjectPaths, task_id: str, worker: str, policy: str) -> None:
    """Open the session of a worker that took the task up; an earlier worker's ends as stopped."""
    if (step := _open_step(tx, task_id)) is None:
        return
    if step.session_id is not None and _is_open(tx, step.session_id):
        sessions.set_status(tx, step.session_id, "stopped")
    task = tasks.load(tx.connection, task_id)
    session = sessions.create(
        tx,
        task_type=sessions.EXTERNAL_AGENT,
        title=task.title,
        words="",
        target={},
        model=f"{sessions.RUNNER_PREFIX}{worker}",
        policy=policy,
        interactive=False,
        root=place.home,
        rev=None,
        profile_id=profiles.ensure_default(tx, DEFAULT_BUDGET).profile_id,
        limits={},
        project=place.home.name,
        branch="",
        task_id=task_id,
        actor="engine",
        agent=worker,
        transport=TRANSPORT,
    )
    task_runs.attach_session(tx, step, session.session_id)


def find_session(tx: Tx, task_id: str) -> str:
    """Return the id of the open session of the task's worker; '' without one."""
    step = _open_step(tx, task_id)
    return step.session_id or "" if step is not None else ""


def close_session(tx: Tx, task_id: str, status: str, summary: str) -> None:
    """End the session of the task's worker, whose run ended as ``status``."""
    session_id = find_session(tx, task_id)
    if not session_id or not _is_open(tx, session_id):
        return
    if status == "ready":
        ended = SessionCompleted(status="done", summary=summary)
        sessions.set_status(tx, session_id, "completed", detail=ended)
    elif status == "interrupted":
        sessions.set_status(tx, session_id, "stopped")
    else:
        sessions.set_status(tx, session_id, "failed", detail=SessionFailed(message=summary))


def _open_step(tx: Tx, task_id: str) -> Step | None:
    steps = task_runs.select_steps(tx.connection, task_id)
    return steps[-1] if steps and steps[-1].open else None


def _is_open(tx: Tx, session_id: str) -> bool:
    return sessions.load(tx.connection, session_id).status in _OPEN
