"""What the store knows that a session may ask for: results of its calls, handoffs, work in progress, notes.

See ``docs/reference/loop.md``, context requests.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from cockpit.core.canonical_json import canonical_json, parse_json
from cockpit.store.backlog import handoffs, tasks, wip
from cockpit.store.context import facts
from cockpit.store.db.database import Store
from cockpit.store.journal.event_types import Action
from cockpit.store.sessions import outbox, plans

_OUTPUTS = ("stdout", "stderr")
_LEFT_OUT = (*_OUTPUTS, "duration_ms")
_SHOWN_ENTRIES = 50
"""Decisions and errors of a task's work in progress that are shown, the newest."""
_LOOKED_AT = 100
"""Records of each kind that are searched for the last test run, the newest."""
MAX_NOTES = 2_000
"""Handoffs, and tasks with work in progress, that are searched for notes, the newest."""


class StoredRecords(Struct, frozen=True):
    """The records of one session's store."""

    store: Store
    session_id: str


class StoredNote(Struct, frozen=True):
    """A text of the backlog: a handoff, or a task's work in progress."""

    kind: str
    """``handoff`` or ``wip``."""
    task_id: str
    text: str


class LastTests(Struct, frozen=True):
    """The newest run of tests that cockpit has recorded."""

    is_green: bool
    at: str
    summary: str


def find_last_tests(connection: sqlite3.Connection) -> LastTests | None:
    """Return the newest of the project's test runs, among its newest records; None without one.

    These are the steps of tasks, and commands whose tests were counted.
    """
    steps = connection.execute(
        "SELECT at, detail_json FROM journal WHERE action=? ORDER BY seq DESC LIMIT ?",
        (str(Action.TASK_RUN_STEP), _LOOKED_AT),
    )
    runs = [
        LastTests(step["outcome"] == "passed", str(at), str(step.get("summary", "")))
        for at, text in steps
        if (step := parse_json(text))["step"] == "test" and step["outcome"] in ("passed", "failed")
    ][:1]
    receipts = connection.execute(
        "SELECT created_at, status, summary, json_type(detail_json, '$.tests') FROM action_receipts"
        " ORDER BY rowid DESC LIMIT ?",
        (_LOOKED_AT,),
    )
    runs += [
        LastTests(status == "success", str(at), str(summary))
        for at, status, summary, tests in receipts
        if tests == "object"
    ][:1]
    return max(runs, key=lambda run: run.at, default=None)


def find_result(
    connection: sqlite3.Connection, session_id: str, wave: int, place: int
) -> str | None:
    """Return a call of the session and its whole result; None where there was no such call."""
    wave_id = f"{session_id}-w{wave}"
    plan = plans.find(connection, wave_id)
    if plan is None or not 1 <= place <= len(plan.calls):
        return None
    call = plan.calls[place - 1]
    for action in outbox.select_for_wave(connection, wave_id):
        receipts = outbox.select_receipts(connection, action.action_id)
        if action.key == call.get("key") and receipts:
            result = f"{receipts[-1].summary}\n{_format_detail(receipts[-1].detail)}".strip()
            return f"{call['name']} {canonical_json(call['arguments'])}\n→ {result}"
    return _find_exchange_text(connection, session_id, f"exchange:{wave}.{place}")


def _find_exchange_text(
    connection: sqlite3.Connection, session_id: str, source_ref: str
) -> str | None:
    row = connection.execute(
        "SELECT fact_id FROM session_facts WHERE session_id=? AND source_ref=? LIMIT 1",
        (session_id, source_ref),
    ).fetchone()
    return None if row is None else facts.load_texts(connection, [row[0]])[row[0]].full


def _format_detail(detail: Mapping[str, Any]) -> str:
    rest = {
        name: value
        for name, value in detail.items()
        if name not in _LEFT_OUT and value not in (None, "", [], {})
    }
    outputs = [str(detail[name]) for name in _OUTPUTS if detail.get(name)]
    return "\n".join([*([canonical_json(rest)] if rest else []), *outputs])


def find_handoff(connection: sqlite3.Connection, task_id: str) -> str | None:
    """Return a task's handoff as text; None where it has none.

    Raises :class:`~cockpit.core.errors.NotFound` for a text that cannot be a task's id.
    """
    handoff = handoffs.find(connection, task_id)
    return None if handoff is None else _format_handoff(handoff)


def find_wip(connection: sqlite3.Connection, task_id: str) -> str | None:
    """Return a task's work in progress as text; None where it has none.

    Raises :class:`~cockpit.core.errors.NotFound` for an unknown task.
    """
    task = tasks.load(connection, task_id)
    return _format_wip(task.title, task.wip) if task.wip else None


def select_notes(connection: sqlite3.Connection) -> list[StoredNote]:
    """Read the newest handoffs and the newest work in progress of all tasks."""
    notes = [
        StoredNote("handoff", handoff.task_id, _format_handoff(handoff))
        for handoff in handoffs.select_recent(connection, MAX_NOTES)
    ]
    rows = connection.execute(
        "SELECT task_id, title, work_in_progress FROM tasks WHERE work_in_progress IS NOT NULL"
        " ORDER BY wip_updated_at DESC, task_id LIMIT ?",
        (MAX_NOTES,),
    )
    notes += [
        StoredNote("wip", task_id, _format_wip(title, json.loads(state)))
        for task_id, title, state in rows
    ]
    return notes


def _format_handoff(handoff: handoffs.Handoff) -> str:
    lines = [f"{handoff.task_id}: {handoff.status}", handoff.summary]
    if handoff.files_changed:
        lines.append(f"files changed: {', '.join(handoff.files_changed)}")
    return "\n".join([*lines, *([handoff.full_details] if handoff.full_details else [])])


def _format_wip(title: str, state: Mapping[str, Any]) -> str:
    lines = [title]
    for name, value in wip.keep_newest(state, _SHOWN_ENTRIES).items():
        if isinstance(value, list):
            lines.append(f"{name}:")
            lines += [f"- {_format_entry(entry)}" for entry in value]
        else:
            lines.append(f"{name}: {_format_entry(value)}")
    return "\n".join(lines)


def _format_entry(value: Any) -> str:
    return value if isinstance(value, str) else canonical_json(value)
