"""The words that say what a session is for, by which its skills and its knowledge are chosen.

A role's first message is cockpit's own text around its task. It quotes the change, the output of tests and
notes of earlier agents; what others wrote must not choose what an agent is given. See
``docs/reference/skills.md``, choosing.
"""

from __future__ import annotations

import sqlite3

from cockpit.store.backlog import tasks
from cockpit.store.backlog.tasks import Task
from cockpit.store.sessions.sessions import Session


def read_task_words(connection: sqlite3.Connection, session: Session) -> str:
    """Return what the user wrote for the session and its task; for a role, the role and its task alone."""
    if session.task_id is None:
        return session.words
    task = tasks.load(connection, session.task_id)
    return join_task_words(task, session.role) if session.role else _join(session.words, task)


def join_task_words(task: Task, role: str) -> str:
    """Return the words of a task for the session of a role."""
    return _join(role.replace("_", " "), task)


def _join(first: str, task: Task) -> str:
    parts = (first, task.title, task.description, task.acceptance_criteria)
    return "\n".join(dict.fromkeys(part for part in parts if part))
