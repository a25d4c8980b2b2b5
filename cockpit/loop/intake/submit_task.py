"""Submitting a new session's task: its first messages, and the event that its first wave begins for.

See ``docs/reference/loop.md``.
"""

from __future__ import annotations

from collections.abc import Sequence

from cockpit.loop.intake.first_message import Opening
from cockpit.loop.intake.intent import Task
from cockpit.loop.phases.project_change import STATE
from cockpit.loop.session_loop import TASK_SUBMITTED
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import events, messages
from cockpit.store.sessions.sessions import Session


def submit_task(
    tx: Tx, session: Session, task: Task, opened: Opening, type_problems: Sequence[str], state: str
) -> None:
    """Store the task of a session that this transaction has created.

    ``type_problems`` are shown to the user, ``state`` is that of the project before the session.
    """
    messages.complete(tx, session_id=session.session_id, role="person", text=task.words)
    for problem in type_problems:
        text = f"Not used: {problem}"
        messages.complete(tx, session_id=session.session_id, role="notice", text=text)
    if opened.notice:
        messages.complete(tx, session_id=session.session_id, role="notice", text=opened.notice)
    events.ingest(
        tx,
        source=session.source,
        source_event_id="task",
        event_type=TASK_SUBMITTED,
        trace_id=session.trace_id,
        payload={
            "text": opened.text,
            "scope_items": list(opened.scope_items),
            "included": dict(opened.in_message),
            "named": list(opened.named),
            "proposed": list(opened.proposed),
            STATE: state,
        },
    )
