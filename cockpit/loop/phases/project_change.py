"""Whether a session has changed anything: its own actions, or the project as git sees it.

An agent may call its task done without a change. The end of such a session says so. See
``docs/reference/loop.md``, ends.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from cockpit.access.run_program import ProgramMissing, run_git
from cockpit.act.text_edits import bytes_digest
from cockpit.core.canonical_json import digest
from cockpit.loop.wave_context import WaveContext
from cockpit.store.sessions import outbox, plans
from cockpit.store.sessions.outbox import OutboxAction
from cockpit.store.sessions.plans import Plan

STATE = "project_state"
"""The field of a task's event with :func:`read_project_state` as it was before the session."""

_OWN_FILES = ".cockpit/"


async def read_project_state(root: Path) -> str:
    """Return a digest of the project's commit and its changed files; empty outside of git.

    cockpit's own files do not count.
    """
    try:
        head = await run_git("rev-parse", "--verify", "--quiet", "HEAD", cwd=root)
        status = await run_git("status", "--porcelain=v1", "-z", "--untracked-files=all", cwd=root)
        change = await run_git("diff", "--binary", "HEAD", "--", cwd=root)
    except ProgramMissing:
        return ""
    if not status.ok:
        return ""
    entries = [entry for entry in status.text.split("\0") if not entry[3:].startswith(_OWN_FILES)]
    return digest([head.text, entries, bytes_digest(change.stdout)])


def find_finish(plan: Plan) -> tuple[str, str] | None:
    """Return the status and summary of the plan's valid ``finish`` call, if it has one."""
    for call in plan.calls:
        if call["name"] == "finish" and not call["error"]:
            return str(call["arguments"]["status"]), str(call["arguments"]["summary"])
    return None


async def has_changed_nothing(context: WaveContext) -> bool:
    """Return whether this wave calls a task done that needs a change, and the session has made none.

    Where git cannot tell, a command that may have changed something counts as a change.
    """
    task_type = context.engine.task_types.get(context.session.task_type)
    if task_type is None or not task_type.must_change or context.session.role:
        return False
    finish, actions, before = context.store.read_now(lambda c: _read(c, context))
    if finish is None or finish[0] != "done" or any(map(_is_change, actions)):
        return False
    if not before:
        return not any(
            action.action_type in ("run", "own_tool") and not action.payload.get("reading")
            for action in actions
        )
    return await read_project_state(context.engine.place.root) == before


def _read(
    connection: sqlite3.Connection, context: WaveContext
) -> tuple[tuple[str, str] | None, list[OutboxAction], str]:
    """Return the wave's finish, the session's confirmed actions, and the project's state before it."""
    plan = plans.find(connection, context.wave.wave_id)
    actions = outbox.select_for_session(connection, context.session.session_id)
    row = connection.execute(
        "SELECT json_extract(payload_json, ?) FROM events WHERE source=? AND source_event_id='task'",
        (f"$.{STATE}", context.session.source),
    ).fetchone()
    return (
        None if plan is None else find_finish(plan),
        [action for action in actions if action.phase == "confirmed"],
        str(row[0] or "") if row is not None else "",
    )


def _is_change(action: OutboxAction) -> bool:
    if action.action_type in ("write_file", "edit_file"):
        return action.payload.get("before_sha256") != action.payload.get("after_sha256")
    return action.action_type in ("git_commit", "github", "mcp_tool")
