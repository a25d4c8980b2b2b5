"""A chain's journal as lines of text: one line for each event that moves the chain.

Lines are not cleaned for a terminal; the caller that prints them does that. See
``docs/reference/chains.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cockpit.chains.handover import END_REASONS
from cockpit.core.text import pluralize
from cockpit.learn.resume_line import one_line
from cockpit.store.journal.event_types import Action
from cockpit.store.journal.journal import Row


@dataclass(frozen=True, slots=True)
class ProgressLine:
    """A line about the chain."""

    line: str
    needs_user: bool = False
    """Whether the chain waits for a decision of the user."""


def running_roles(connection: sqlite3.Connection, chain_id: str) -> dict[str, str]:
    """Return the chain's running sessions by id, each as its task and role (``T-1 implementer``)."""
    rows = connection.execute(
        "SELECT s.session_id, r.task_id, s.role FROM task_runs r JOIN sessions s USING(session_id)"
        " WHERE r.chain_id=? AND r.outcome IS NULL",
        (chain_id,),
    )
    return {session_id: _task_and_role(task_id, role) for session_id, task_id, role in rows}


def _task_and_role(task_id: str, role: str) -> str:
    return f"{task_id} {role.replace('_', ' ')}".strip()


class ProgressLines:
    """Turns journal rows, in order, into the lines of one chain.

    ``roles`` names the sessions that run already (:func:`running_roles`).
    """

    def __init__(self, chain_id: str, roles: Mapping[str, str] | None = None) -> None:
        self._chain_id = chain_id
        self._running_tasks: set[str] = set()
        self._roles: dict[str, str] = dict(roles or {})
        self._proposed: dict[str, str] = {}

    def line_for(self, row: Row) -> ProgressLine | None:
        """Return the line for this row; None for a row without one."""
        detail = row.raw_detail()
        if row.action == Action.SESSION_CREATED and detail.get("task_id") in self._running_tasks:
            self._roles[row.session_id] = _task_and_role(detail["task_id"], detail.get("role", ""))
            return None
        if row.session_id in self._roles and row.action in _ROLE_EVENTS:
            return self._role_line(row)
        if detail.get("chain_id") != self._chain_id:
            return None
        if row.action == Action.BATCH_STARTED:
            self._running_tasks |= set(detail["task_ids"])
        elif row.action == Action.BATCH_COMPLETED:
            self._running_tasks -= {*detail["done"], *detail["blocked"], *detail["interrupted"]}
        write = _LINES.get(row.action)
        line = write(detail) if write else ""
        return ProgressLine(line) if line else None

    def _role_line(self, row: Row) -> ProgressLine | None:
        """Return a line when a role's session waits for the user, once for each proposal."""
        if row.action in _SESSION_ENDS:
            del self._roles[row.session_id]
            self._proposed.pop(row.session_id, None)
        elif row.action == Action.PROPOSAL_CREATED:
            title = one_line(row.raw_detail()["title"])
            self._proposed[row.session_id] = (
                f"{title}: cockpit proposals show {row.raw_detail()['proposal_id']}"
            )
        elif row.action == Action.SESSION_WAITING and row.session_id in self._proposed:
            proposal = self._proposed.pop(row.session_id)
            role = self._roles[row.session_id]
            return ProgressLine(f"  ⏸ {role} waits for you, {proposal}", needs_user=True)
        return None


def _chain_started(detail: Mapping[str, Any]) -> str:
    kind, scope_id = detail["scope"]["kind"], detail["scope"]["id"]
    scope = "the backlog" if kind == "all" else f"{kind} {scope_id}"
    return f"{detail['chain_id']} works on {scope}, on {detail['branch']}: {_progress(detail)}"


def _chain_followed(detail: Mapping[str, Any]) -> str:
    return f"Started because a session of {detail['agent']} ended."


def _worker_started(detail: Mapping[str, Any]) -> str:
    return f"▶ s{detail['ordinal']} (process {detail['pid']}): {_progress(detail)}"


def _worker_ended(detail: Mapping[str, Any]) -> str:
    used = f"{detail['tokens']:,} of {detail['token_limit']:,} tokens"
    left_out = f"{round(100 * detail['dropped_share'])} % of known facts left out"
    reason = END_REASONS.get(detail["reason"], detail["reason"])
    mark = "✔" if detail["status"] == "clean" else "■"
    return f"{mark} s{detail['ordinal']} {reason}; {used}, {left_out}"


def _worker_died(detail: Mapping[str, Any]) -> str:
    freed = detail["freed"]
    resumed = f"; the next worker resumes {', '.join(freed)}" if freed else ""
    return f"✘ s{detail['ordinal']} died: {one_line(detail['reason'])}{resumed}"


def _batch_started(detail: Mapping[str, Any]) -> str:
    return f"  batch {detail['batch']}: {', '.join(detail['task_ids'])}"


def _batch_ended(detail: Mapping[str, Any]) -> str:
    parts = [f"{', '.join(detail[name])} {name}" for name in _BATCH_RESULTS if detail[name]]
    return f"  batch {detail['batch']} {detail['outcome']}: {'; '.join(parts)}"


def _step(detail: Mapping[str, Any]) -> str:
    step = str(detail["step"]).replace("_", " ")
    if not detail["outcome"]:
        attempt = f" {detail['attempt']}" if int(detail["attempt"]) > 1 else ""
        return "" if step in ("done", "blocked") else f"    {detail['task_id']} · {step}{attempt}"
    if step in ("done", "blocked"):
        return ""
    mark = "✔" if detail["outcome"] in _GOOD_OUTCOMES else "✘"
    summary = one_line(detail["summary"])
    ending = f" · {summary}" if summary else ""
    return f"    {detail['task_id']} {mark} {step}: {detail['outcome']}{ending}"


def _run_ended(detail: Mapping[str, Any]) -> str:
    mark = "✔" if detail["step"] == "done" else "✘"
    return f"  {mark} {detail['task_id']} is {detail['step']}: {one_line(detail['summary'])}"


def _task_resumed(detail: Mapping[str, Any]) -> str:
    return f"    {one_line(detail['message'])}"


def _draining(detail: Mapping[str, Any]) -> str:
    if detail["now"]:
        return "Stopping now; all work is kept."
    return "Draining: running tasks finish their current step, and no other step starts."


def _chain_ended(detail: Mapping[str, Any]) -> str:
    reason = f": {detail['reason']}" if detail["reason"] else ""
    return f"{detail['chain_id']} is {detail['status']}{reason}. {_progress(detail)}"


def _report_written(detail: Mapping[str, Any]) -> str:
    return f"Report: {detail['path']}"


def _progress(detail: Mapping[str, Any]) -> str:
    counts = detail["progress"]
    text = f"{counts['done']}/{pluralize(counts['total'], 'task')} done, {counts['ready']} ready"
    return f"{text}, {counts['blocked']} blocked" if counts["blocked"] else text


_BATCH_RESULTS = ("done", "blocked", "interrupted")
_GOOD_OUTCOMES = ("done", "passed", "none", "PASS", "merged", "nothing")
_SESSION_ENDS = (Action.SESSION_COMPLETED, Action.SESSION_FAILED, Action.SESSION_STOPPED)
_ROLE_EVENTS = (*_SESSION_ENDS, Action.PROPOSAL_CREATED, Action.SESSION_WAITING)
_LINES: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    Action.CHAIN_CREATED: _chain_started,
    Action.CHAIN_RESUMED: _chain_started,
    Action.CHAIN_FOLLOWED: _chain_followed,
    Action.CHAIN_SESSION_STARTED: _worker_started,
    Action.CHAIN_SESSION_ENDED: _worker_ended,
    Action.CHAIN_SESSION_CRASHED: _worker_died,
    Action.CHAIN_DRAINING: _draining,
    Action.CHAIN_COMPLETED: _chain_ended,
    Action.CHAIN_STOPPED: _chain_ended,
    Action.CHAIN_REPORTED: _report_written,
    Action.BATCH_STARTED: _batch_started,
    Action.BATCH_COMPLETED: _batch_ended,
    Action.TASK_TAKEN_UP: _task_resumed,
    Action.TASK_RUN_STEP: _step,
    Action.TASK_RUN_ENDED: _run_ended,
}
