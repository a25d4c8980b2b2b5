"""Reflect on a session when it ends: propose its lessons, and test older notes against it.

Nothing is added to any later session's context before the user has kept it. See ``docs/reference/notes.md``.
"""

from __future__ import annotations

import sqlite3
from typing import Any

from cockpit.core.canonical_json import parse_json
from cockpit.learn.notes.distil import (
    CommandRun,
    Decided,
    SessionEvidence,
    distil,
    list_failing,
)
from cockpit.store.db.transaction import Tx
from cockpit.store.notes import notes
from cockpit.store.notes.notes import Note
from cockpit.store.sessions.proposals import EDITED
from cockpit.store.sessions.sessions import Session

MOST_ACTIONS = 2_000
"""Actions of a session that are looked at, the newest."""
_ERROR_WORDS = ("error", "failed", "exception", "cannot", "no such", "not found", "fatal")


def reflect(tx: Tx, session: Session) -> list[Note]:
    """Propose the lessons of a session that has ended, in its last transaction; returns what it taught.

    A command note whose command the session left failing is contradicted; questions of a task that is done
    are answered. A session that ends again, after it was resumed, teaches only what is new.
    """
    evidence = read_evidence(tx.connection, session)
    for subject, error in list_failing(evidence).items():
        note = notes.select_by_subject(tx.connection, "command", subject)
        if note is not None and note.session_id != session.session_id:
            why = f"it failed: {error}" if error else "it failed"
            notes.contradict(tx, note, why, session_id=session.session_id)
    if evidence.status == "done":
        _close_questions(tx, session)
    proposed = [
        notes.propose(
            tx,
            draft,
            session_id=session.session_id,
            task_type=session.task_type,
            task_id=session.task_id,
        )
        for draft in distil(evidence)
    ]
    return [note for note in proposed if note is not None]


def _close_questions(tx: Tx, session: Session) -> None:
    for note in notes.select_open_questions(tx.connection, session.session_id, session.task_id):
        notes.forget(tx, note.note_id, "answered: the session ended as done", by="engine")


def read_evidence(connection: sqlite3.Connection, session: Session) -> SessionEvidence:
    """Read what a session's lessons are distilled from."""
    return SessionEvidence(
        _read_decisions(connection, session.session_id),
        _read_commands(connection, session.session_id),
        str(session.result.get("status", "")),
        str(session.result.get("summary", "")),
        session.model != "offline" and _count_waves(connection, session.session_id) > 1,
    )


def _count_waves(connection: sqlite3.Connection, session_id: str) -> int:
    (count,) = connection.execute(
        "SELECT count(*) FROM wave_runs WHERE session_id=?", (session_id,)
    ).fetchone()
    return int(count)


def _read_decisions(connection: sqlite3.Connection, session_id: str) -> tuple[Decided, ...]:
    decided = []
    rows = connection.execute(
        "SELECT title, status, reason, decided_at FROM proposals WHERE session_id=?"
        " AND status IN ('discussed','rejected') AND decided_by='person' AND reason<>?"
        " ORDER BY rowid",
        (session_id, EDITED),
    ).fetchall()
    for title, status, reason, decided_at in rows:
        words = str(reason)
        if not words and status == "discussed":
            row = connection.execute(
                "SELECT text FROM messages WHERE session_id=? AND role='person' AND created_at>=?"
                " ORDER BY created_at LIMIT 1",
                (session_id, decided_at),
            ).fetchone()
            words = str(row[0]) if row else ""
        if words:
            decided.append(Decided(str(title), str(status), words))
    return tuple(decided)


def _read_commands(connection: sqlite3.Connection, session_id: str) -> tuple[CommandRun, ...]:
    rows = connection.execute(
        "SELECT action_type, payload_json, outbox_actions.phase, action_receipts.detail_json"
        " FROM wave_runs CROSS JOIN outbox_actions USING (wave_id)"
        " CROSS JOIN action_receipts USING (action_id) WHERE wave_runs.session_id=?"
        " AND action_type IN ('run','write_file','edit_file')"
        " ORDER BY action_receipts.rowid DESC LIMIT ?",
        (session_id, MOST_ACTIONS),
    ).fetchall()
    runs, changed = [], list[str]()
    for kind, payload, phase, detail in reversed(rows):
        if kind != "run":
            if phase == "confirmed":
                changed.append(str(parse_json(payload).get("path", "")))
            continue
        run = _read_run(parse_json(detail), tuple(changed))
        if run is not None:
            runs.append(run)
            changed.clear()
    return tuple(runs)


def _read_run(detail: dict[str, Any], changed: tuple[str, ...]) -> CommandRun | None:
    argv = tuple(str(word) for word in detail.get("argv", ()))
    if not argv or "exit_code" not in detail:
        return None  # it did not run to an end, which says nothing of the command
    passed = detail["exit_code"] == 0
    counts = detail.get("tests") or {}
    tests = ", ".join(f"{number} {name}" for name, number in counts.items())
    error = "" if passed else _find_error(f"{detail.get('stderr', '')}\n{detail.get('stdout', '')}")
    return CommandRun(argv, passed, tests, error, changed)


def _find_error(output: str) -> str:
    """Return the last line that names an error, else the last line with text."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    naming = [line for line in lines if any(word in line.casefold() for word in _ERROR_WORDS)]
    return (naming or lines or [""])[-1][:300]
