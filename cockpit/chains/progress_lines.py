"""The journal of a chain as a story in words: one line for each thing that moves it.

Lines are not cleaned for a terminal here; who prints them does that.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cockpit.core.text import pluralize
from cockpit.learn.resume_line import one_line
from cockpit.store.chains.workers import END_REASONS
from cockpit.store.journal.event_types import Action
from cockpit.store.journal.journal import Row


@dataclass(frozen=True, slots=True)
class ProgressLine:
    """A line of the story; ``calls`` when a person is waited for."""

    line: str
    calls: bool = False


def running_roles(connection: sqlite3.Connection, chain_id: str) -> dict[str, str]:
    """The sessions of roles that are under way in the chain, with the task and the role of each."""
    found = connection.execute(
        "SELECT s.session_id, r.task_id, s.role FROM task_runs r JOIN sessions s USING(session_id)"
        " WHERE r.chain_id=? AND r.outcome IS NULL",
        (chain_id,),
    )
    return {session_id: _who(task_id, role) for session_id, task_id, role in found}


def _who(task_id: str, role: str) -> str:
    return f"{task_id} {role.replace('_', ' ')}".strip()


class ProgressLines:
    """Turns rows, in the order of the journal, into the lines that belong to one chain.

    ``roles`` names the sessions that are under way when it begins (:func:`running_roles`). What it
    keeps is the tasks at work and their sessions, no more.
    """

    def __init__(self, chain_id: str, roles: Mapping[str, str] | None = None) -> None:
        self._chain_id = chain_id
        self._at_work: set[str] = set()
        self._roles: dict[str, str] = dict(roles or {})
        self._proposed: dict[str, str] = {}

    def tell(self, row: Row) -> ProgressLine | None:
        """The line that this row adds, if any."""
        detail = row.raw_detail()
        if row.action == Action.SESSION_CREATED and detail.get("task_id") in self._at_work:
            self._roles[row.session_id] = _who(detail["task_id"], detail.get("role", ""))
            return None
        if row.session_id in self._roles and row.action in _OF_ROLES:
            return self._of_role(row)
        if detail.get("chain_id") != self._chain_id:
            return None
        if row.action == Action.BATCH_STARTED:
            self._at_work |= set(detail["task_ids"])
        elif row.action == Action.BATCH_COMPLETED:
            self._at_work -= {*detail["done"], *detail["blocked"], *detail["interrupted"]}
        write = _LINES.get(row.action)
        line = write(detail) if write else ""
        return ProgressLine(line) if line else None

    def _of_role(self, row: Row) -> ProgressLine | None:
        """Of a role's session only that it waits is told, once for each proposal."""
        if row.action in _SESSION_ENDS:
            del self._roles[row.session_id]
            self._proposed.pop(row.session_id, None)
        elif row.action == Action.PROPOSAL_CREATED:
            about = f"{one_line(row.raw_detail()['title'])}: cockpit proposals show"
            self._proposed[row.session_id] = f"{about} {row.raw_detail()['proposal_id']}"
        elif row.action == Action.SESSION_WAITING and row.session_id in self._proposed:
            about = self._proposed.pop(row.session_id)
            return ProgressLine(
                f"  ⏸ {self._roles[row.session_id]} waits for you, {about}", calls=True
            )
        return None


def _begun(detail: Mapping[str, Any]) -> str:
    kind, scope_id = detail["scope"]["kind"], detail["scope"]["id"]
    scope = "the backlog" if kind == "all" else f"{kind} {scope_id}"
    return f"{detail['chain_id']} works on {scope}, on {detail['branch']}: {_standing(detail)}"


def _followed(detail: Mapping[str, Any]) -> str:
    return f"It follows a session of {detail['agent']} that has ended."


def _session_began(detail: Mapping[str, Any]) -> str:
    return f"▶ s{detail['ordinal']} (process {detail['pid']}): {_standing(detail)}"


def _session_ended(detail: Mapping[str, Any]) -> str:
    used = f"{detail['tokens']:,} of {detail['token_limit']:,} tokens"
    left_out = f"{round(100 * detail['dropped_share'])} % of what was known left out"
    why = END_REASONS.get(detail["reason"], detail["reason"])
    mark = "✔" if detail["status"] == "clean" else "■"
    return f"{mark} s{detail['ordinal']} {why}; {used}, {left_out}"


def _session_died(detail: Mapping[str, Any]) -> str:
    freed = detail["freed"]
    are = "is" if len(freed) == 1 else "are"
    kept = f"; {', '.join(freed)} {are} taken up again" if freed else ""
    return f"✘ s{detail['ordinal']} died: {one_line(detail['reason'])}{kept}"


def _batch(detail: Mapping[str, Any]) -> str:
    return f"  batch {detail['batch']}: {', '.join(detail['task_ids'])}"


def _batch_ended(detail: Mapping[str, Any]) -> str:
    parts = [f"{', '.join(detail[name])} {name}" for name in _ENDS if detail[name]]
    return f"  batch {detail['batch']} {detail['outcome']}: {'; '.join(parts)}"


def _step(detail: Mapping[str, Any]) -> str:
    step = str(detail["step"]).replace("_", " ")
    if not detail["outcome"]:
        again = f" {detail['attempt']}" if int(detail["attempt"]) > 1 else ""
        return "" if step in ("done", "blocked") else f"    {detail['task_id']} · {step}{again}"
    if step in ("done", "blocked"):
        return ""
    mark = "✔" if detail["outcome"] in _GOOD else "✘"
    said = one_line(detail["summary"])
    return (
        f"    {detail['task_id']} {mark} {step}: {detail['outcome']}{f' · {said}' if said else ''}"
    )


def _run_ended(detail: Mapping[str, Any]) -> str:
    mark = "✔" if detail["step"] == "done" else "✘"
    return f"  {mark} {detail['task_id']} is {detail['step']}: {one_line(detail['summary'])}"


def _taken_up(detail: Mapping[str, Any]) -> str:
    return f"    {one_line(detail['message'])}"


def _draining(detail: Mapping[str, Any]) -> str:
    if detail["now"]:
        return "It stops now; everything is kept where it stands."
    return "It drains: what is under way is finished to its next step, and nothing is begun."


def _ended(detail: Mapping[str, Any]) -> str:
    why = f": {detail['reason']}" if detail["reason"] else ""
    return f"{detail['chain_id']} is {detail['status']}{why}. {_standing(detail)}"


def _reported(detail: Mapping[str, Any]) -> str:
    return f"Report: {detail['path']}"


def _standing(detail: Mapping[str, Any]) -> str:
    known = detail["progress"]
    told = f"{known['done']}/{pluralize(known['total'], 'task')} done, {known['ready']} ready"
    return f"{told}, {known['blocked']} blocked" if known["blocked"] else told


_ENDS = ("done", "blocked", "interrupted")
_GOOD = ("done", "passed", "none", "PASS", "merged", "nothing")
_SESSION_ENDS = (Action.SESSION_COMPLETED, Action.SESSION_FAILED, Action.SESSION_STOPPED)
_OF_ROLES = (*_SESSION_ENDS, Action.PROPOSAL_CREATED, Action.SESSION_WAITING)
_LINES: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    Action.CHAIN_CREATED: _begun,
    Action.CHAIN_RESUMED: _begun,
    Action.CHAIN_FOLLOWED: _followed,
    Action.CHAIN_SESSION_STARTED: _session_began,
    Action.CHAIN_SESSION_ENDED: _session_ended,
    Action.CHAIN_SESSION_CRASHED: _session_died,
    Action.CHAIN_DRAINING: _draining,
    Action.CHAIN_COMPLETED: _ended,
    Action.CHAIN_STOPPED: _ended,
    Action.CHAIN_REPORTED: _reported,
    Action.BATCH_STARTED: _batch,
    Action.BATCH_COMPLETED: _batch_ended,
    Action.TASK_TAKEN_UP: _taken_up,
    Action.TASK_RUN_STEP: _step,
    Action.TASK_RUN_ENDED: _run_ended,
}
