"""A chain's journal as lines of text: one line for each event that moves the chain.

Lines are not cleaned for a terminal; the caller that prints them does that. See
``docs/reference/chains.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from msgspec import Struct

from cockpit.core.text import end_sentence, pluralize
from cockpit.learn.resume_line import one_line
from cockpit.loop.views.estimate_text import basis_text, expected_text
from cockpit.loop.views.state_signs import state_sign
from cockpit.store.chains.end_reasons import END_REASONS
from cockpit.store.chains.retry_delays import describe_retry
from cockpit.store.journal.details import chains
from cockpit.store.journal.details.agents import RunnerNoted
from cockpit.store.journal.details.detail import Detail
from cockpit.store.journal.details.estimates import EstimateMade
from cockpit.store.journal.details.proposals import ProposalCreated
from cockpit.store.journal.details.sessions import (
    SessionCompleted,
    SessionCreated,
    SessionFailed,
    SessionStopped,
    SessionWaiting,
)
from cockpit.store.journal.details.tasks import TaskRunStep, TaskTakenUp
from cockpit.store.journal.journal import Row
from cockpit.tasks.outage import LIMIT, describe_limit, is_passing


class ProgressLine(Struct, frozen=True):
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
        detail = row.detail
        if isinstance(detail, SessionCreated) and detail.task_id in self._running_tasks:
            self._roles[row.session_id] = _task_and_role(detail.task_id or "", detail.role)
            return None
        if isinstance(detail, RunnerNoted):
            role = self._roles.get(row.session_id)
            # What was no message of the agent's stream is an error, and nothing to look at.
            is_said = role is not None and row.result == "ok"
            return ProgressLine(f"    ⚠ {role}: {one_line(detail.message)}") if is_said else None
        if row.session_id in self._roles and isinstance(detail, _ROLE_EVENTS):
            return self._role_line(row.session_id, detail)
        if isinstance(detail, EstimateMade) and detail.unit == "task":
            task_id = detail.subject.partition("/")[0]
            is_ours = task_id in self._running_tasks
            line = (
                f"    {task_id} ≈ {expected_text(detail.expected)} · {basis_text(detail.expected)}"
            )
            return ProgressLine(line) if is_ours else None
        if not isinstance(detail, _CHAIN_EVENTS) or detail.chain_id != self._chain_id:
            return None
        if isinstance(detail, chains.BatchChanged):
            self._running_tasks |= set(detail.task_ids)
            self._running_tasks -= {*detail.done, *detail.blocked, *detail.interrupted}
        line = _line(detail)
        return ProgressLine(line) if line else None

    def _role_line(self, session_id: str, detail: Detail) -> ProgressLine | None:
        """Return a line when a role's session waits for the user, once for each proposal."""
        match detail:
            case ProposalCreated():
                title = one_line(detail.title)
                self._proposed[session_id] = f"{title}: cockpit proposals {detail.proposal_id}"
            case SessionWaiting():
                proposal = self._proposed.pop(session_id, "")
                role = self._roles[session_id]
                if proposal:
                    return ProgressLine(f"  ⏸ {role} waits for you, {proposal}", needs_user=True)
            case _:
                del self._roles[session_id]
                self._proposed.pop(session_id, None)
        return None


def _line(detail: Detail) -> str:
    match detail:
        case chains.ChainChanged():
            return _chain(detail)
        case chains.ChainNoted(what="followed"):
            return f"Started because a session of {detail.agent} ended."
        case chains.ChainNoted(what="requested"):
            return "Started by a program over HTTP."
        case chains.ChainNoted():
            return f"⚠ no sandbox for {detail.subject}: {one_line(detail.reason)}"
        case chains.WorkerChanged():
            return _worker(detail)
        case chains.ChainDelayed(task_id=""):
            mark = state_sign("worker", "delayed").sign
            if detail.reason.startswith(f"{LIMIT}: "):
                return f"{mark} s{detail.ordinal} paused: {describe_limit(detail.reason)}"
            return f"{mark} s{detail.ordinal} {describe_retry(detail.delay_s, detail.attempt)}"
        case chains.BatchChanged(outcome=""):
            return f"  batch {detail.batch}: {', '.join(detail.task_ids)}"
        case chains.BatchChanged():
            return _batch_ended(detail)
        case chains.ChainDelayed():
            step, retry = (
                detail.step.replace("_", " "),
                describe_retry(detail.delay_s, detail.attempt),
            )
            mark = state_sign("worker", "delayed").sign
            return f"    {detail.task_id} {mark} {step} {retry}: {one_line(detail.reason)}"
        case TaskTakenUp():
            return f"    {one_line(detail.message)}"
        case TaskRunStep():
            return _step(detail)
        case _:
            return ""


def describe_status(status: str, reason: str) -> str:
    """Return the words for a chain's end; a chain that left tasks undone is never called completed."""
    if reason.startswith(f"{LIMIT}: "):
        return f"is paused: {describe_limit(reason)}"
    if is_passing(reason):
        return "is paused"
    return "has ended" if status == "completed" and reason else f"is {status}"


def _chain(detail: chains.ChainChanged) -> str:
    counts = _progress(detail.progress)
    match detail.what:
        case "draining" if detail.stop_now:
            return "Stopping now; all work is kept."
        case "draining":
            return "Draining: running tasks finish their current step, and no other step starts."
        case "ended":
            reason = f": {detail.reason}" if detail.reason else ""
            status = describe_status(detail.status, detail.reason)
            return f"{end_sentence(f'{detail.chain_id} {status}{reason}')} {counts}"
        case "reported":
            return f"Report: {detail.report_path}"
        case _:
            return f"{detail.chain_id} works on {detail.scope}, on {detail.branch}: {counts}"


def _worker(detail: chains.WorkerChanged) -> str:
    mark = state_sign("worker", detail.status).sign
    if detail.status == "running":
        return f"{mark} s{detail.ordinal} (process {detail.pid}): {_progress(detail.progress)}"
    if detail.status == "crashed":
        freed = detail.freed
        resumed = f"; the next worker resumes {', '.join(freed)}" if freed else ""
        return f"{mark} s{detail.ordinal} died: {one_line(detail.reason)}{resumed}"
    used = f"{detail.tokens:,} of {detail.token_limit:,} tokens"
    left_out = f"{round(100 * detail.dropped_share)} % of known facts left out"
    reason = END_REASONS.get(detail.reason, detail.reason)
    return f"{mark} s{detail.ordinal} {reason}; {used}, {left_out}"


def _batch_ended(detail: chains.BatchChanged) -> str:
    results = {"done": detail.done, "blocked": detail.blocked, "interrupted": detail.interrupted}
    parts = [f"{', '.join(tasks)} {name}" for name, tasks in results.items() if tasks]
    outcome = "ended" if detail.outcome == "completed" and detail.blocked else detail.outcome
    return f"  batch {detail.batch} {outcome}: {'; '.join(parts)}"


def _step(detail: TaskRunStep) -> str:
    if detail.step in ("done", "blocked"):
        mark = state_sign("task", detail.step).sign
        ended = f"  {mark} {detail.task_id} is {detail.step}: {one_line(detail.summary)}"
        return ended if detail.outcome else ""
    step = detail.step.replace("_", " ")
    if not detail.outcome:
        attempt = f" {detail.attempt}" if detail.attempt > 1 else ""
        return f"    {detail.task_id} · {step}{attempt}"
    mark = state_sign("check", "ok" if detail.outcome in _GOOD_OUTCOMES else "broken").sign
    summary = one_line(detail.summary)
    ending = f" · {summary}" if summary else ""
    outcome = _OUTCOMES.get(detail.outcome, detail.outcome)
    return f"    {detail.task_id} {mark} {step}: {outcome}{ending}"


def _progress(counts: chains.Progress) -> str:
    text = f"{counts.done}/{pluralize(counts.total, 'task')} done, {counts.ready} ready"
    return f"{text}, {counts.blocked} blocked" if counts.blocked else text


_GOOD_OUTCOMES = ("done", "passed", "none", "PASS", "merged", "nothing", "nothing_to_do")
_OUTCOMES = {
    "nothing": "no change",
    "empty": "no change",
    "blank": "only blank lines",
    "idle": "no tool used",
    "refused": "no permission",
    "nothing_to_do": "nothing to do",
}
"""Outcomes that a reader would not understand, in words."""
_ROLE_EVENTS = (
    SessionCompleted,
    SessionFailed,
    SessionStopped,
    ProposalCreated,
    SessionWaiting,
)
_CHAIN_EVENTS = (
    chains.ChainChanged,
    chains.ChainNoted,
    chains.WorkerChanged,
    chains.ChainDelayed,
    chains.BatchChanged,
    TaskRunStep,
    TaskTakenUp,
)
