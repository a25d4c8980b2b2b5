"""Exit codes, and which one an error or the end of a session gets."""

from __future__ import annotations

import sqlite3
from enum import IntEnum

from cockpit.core.errors import CockpitError, StoreReadOnly, find_machine_fault
from cockpit.loop.views.review_text import is_missing_on_github
from cockpit.store.journal.event_types import Action
from cockpit.store.sessions import proposals, sessions


class Exit(IntEnum):
    """The exit codes of every command. Listed in ``docs/reference/commands.md``."""

    DONE = 0
    FAILED = 1
    WRONG_USE = 2
    REFUSED = 3
    WAITING = 4
    INTERRUPTED = 130
    PIPE_CLOSED = 141


_WRONG_USE = frozenset(
    {
        "config",
        "cycle",
        "intent_unclear",
        "not_found",
        "opening_failed",
        "request_refused",
        "scope_refused",
        "script",
        "task_type_invalid",
        "unknown_command",
        "usage",
    }
)
_REFUSED = frozenset(
    {
        "action_refused",
        "adaptation_running",
        "already_decided",
        "altered",
        "backup_refused",
        "band_invalid",
        "capability_relaxed",
        "command_refused",
        "critical_source",
        "floor_below_minimum",
        "gh_refused",
        "horizon_too_long",
        "malformed",
        "namespace_spoofed",
        "no_sandbox",
        "not_allowed",
        "outside_envelope",
        "over_budget",
        "path_refused",
        "stale",
        "state_refused",
        "stale_base",
        "token_expired",
        "token_revoked",
        "token_unknown",
    }
)


def exit_code_of_error(error: CockpitError) -> Exit:
    """Return the exit code for this kind of error."""
    if find_machine_fault(error) and not isinstance(error, StoreReadOnly):
        return Exit.WAITING
    if error.code in _WRONG_USE:
        return Exit.WRONG_USE
    if error.code in _REFUSED:
        return Exit.REFUSED
    return Exit.WAITING if error.code == "deadline" else Exit.FAILED


def exit_code_of_session(connection: sqlite3.Connection, session_id: str) -> Exit:
    """Return the exit code for the status of a session.

    A session that ended ``blocked`` gets the code of its cause: a deadline that passed, or a refusal
    by the user, a policy or a guard.
    """
    session = sessions.load(connection, session_id)
    status = session.result.get("status") if session.status == "completed" else ""
    if session.status == "waiting" or status == sessions.NEEDS_ANSWER:
        return Exit.WAITING
    if session.status == "stopped":
        return Exit.INTERRUPTED
    if status == "done":
        return Exit.DONE
    if status == sessions.STUCK:
        return Exit.FAILED
    verdicts = {
        proposal.status for proposal in proposals.select_for_session(connection, session_id)
    }
    if "expired" in verdicts:
        return Exit.WAITING
    if is_missing_on_github(connection, session_id):
        return Exit.FAILED
    refusal = connection.execute(
        "SELECT 1 FROM journal WHERE session_id=? AND action=? LIMIT 1",
        (session_id, str(Action.ACTION_REFUSED)),
    ).fetchone()
    if session.status == "completed" and ("rejected" in verdicts or refusal is not None):
        return Exit.REFUSED
    return Exit.FAILED
