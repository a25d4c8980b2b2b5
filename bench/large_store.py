"""A store as months of work leave it: sessions of waves, a backlog, chains, external agents.

Rows are written in bulk, with the shapes and the proportions of real ones; the digests of the journal's
chain are computed, so that the store verifies.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cockpit.core.canonical_json import canonical_json
from cockpit.core.clock import format_time
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal import chain_digest, journal
from cockpit.store.sessions import proposals, sessions

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
WAVES = 12
"""Waves of a session."""
TASK_EVERY = 4
"""Sessions for one task of the backlog."""
WORDS = "review the retry loop of the client and say what is missing in its tests. " * 4
BANDS = [
    {"band": name, "used": 9_000, "min": 3_000, "target": 15_000, "max": 40_000, "facts": 31, "dropped": 4}
    for name in ("identity", "objectives", "capabilities", "situational", "exploration", "reserve")
]  # fmt: skip


def build(path: Path, rows: int, root: Path) -> str:
    """Write a store of about ``rows`` journal rows; return the id of its newest session."""
    with Store.open(path) as store:
        pass
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous=OFF")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA cache_size=-64000")
    connection.execute("BEGIN")
    _Writer(connection, rows, root).write()
    connection.execute("COMMIT")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    with Store.open(path) as store:
        return store.write_now(lambda tx: _newest(tx, root))


def _newest(tx: Tx, root: Path) -> str:
    """A session with a proposal that waits, written as the engine does."""
    session = sessions.create(
        tx, task_type="review_pr", title="newest session", words="review pr 24", target={},
        model="offline", policy="ask", interactive=True, root=root, rev=None, profile_id="default",
        limits={}, project="bench", branch="main",
    )  # fmt: skip
    proposals.create(
        tx, proposal_id="p-newest", kind="action", session_id=session.session_id, wave_id="",
        title="waiting proposal", risk="low",
        body={"type": "edit_file", "fields": [], "body": "the waiting proposal", "payload": {}},
    )  # fmt: skip
    return session.session_id


class _Writer:
    def __init__(self, connection: sqlite3.Connection, rows: int, root: Path) -> None:
        self._connection = connection
        self._rows = rows
        self._root = str(root)
        self._seq, self._digest, self._sealed = connection.execute(
            "SELECT seq, digest, sealed FROM journal_head"
        ).fetchone()
        self._session = self._wave = ""

    def write(self) -> None:
        number = 0
        while self._seq < self._rows:
            number += 1
            if number % TASK_EVERY == 0:
                self._task(number // TASK_EVERY)
            self._one_session(number)
        self._connection.execute(
            "UPDATE journal_head SET seq=?, digest=?, sealed=?",
            (self._seq, self._digest, self._sealed),
        )

    def _now(self) -> str:
        return format_time(BEGAN + timedelta(seconds=self._seq))

    def _row(self, action: str, detail: dict[str, object], actor: str = "engine") -> None:
        self._seq += 1
        self._sealed += 1
        values = (
            self._seq, self._now(), "t", self._session, self._wave, "", "default", 1, actor, action,
            "ok", None, "", canonical_json(detail),
        )  # fmt: skip
        self._digest = chain_digest.chain_digest(self._digest, values)
        self._connection.execute(journal.INSERT, (*values, self._digest))

    def _one_session(self, number: int) -> None:
        self._session, self._wave = f"s-{number:07d}", ""
        title = f"session {number}"
        self._connection.execute(
            "INSERT INTO sessions(session_id, trace_id, task_type, title, words, model, policy, status,"
            " root, profile_id, input_tokens, output_tokens, cost_usd, created_at, updated_at)"
            " VALUES (?,'t','review_pr',?,?,'offline','ask','completed',?,'default',?,?,?,?,?)",
            (self._session, title, WORDS, self._root, 12_000 * WAVES, 400 * WAVES, 0.4,
             self._now(), format_time(BEGAN + timedelta(seconds=self._seq + 17 * WAVES))),
        )  # fmt: skip
        self._row(
            "session.created",
            {
                "task_type": "review_pr", "title": title, "words": WORDS, "target": {},
                "model": "offline", "policy": "ask", "project": "bench", "branch": "main",
                "interactive": True, "role": "", "task_id": None,
            },
            "person",
        )  # fmt: skip
        for ordinal in range(1, WAVES + 1):
            self._one_wave(ordinal)
        self._wave = ""
        self._row("session.completed", {"status": "done", "summary": "Reviewed."})

    def _one_wave(self, ordinal: int) -> None:
        self._wave = f"{self._session}-w{ordinal}"
        self._connection.execute(
            "INSERT INTO wave_runs(wave_id, session_id, ordinal, phase, trace_id, pinned_now,"
            " created_at) VALUES (?,?,?,'created','t',?,?)",
            (self._wave, self._session, ordinal, self._now(), self._now()),
        )
        for action, detail in _wave_rows(self._wave, ordinal):
            if "phase" in detail:
                self._connection.execute(
                    "UPDATE wave_runs SET phase=? WHERE wave_id=?", (detail["phase"], self._wave)
                )
            self._row(action, detail)

    def _task(self, number: int) -> None:
        self._session = self._wave = ""
        task_id, status = f"T-{number}", "done" if number % 20 else "todo"
        self._connection.execute(
            "INSERT INTO tasks(task_id, number, title, status, created_at, updated_at, done_at)"
            " VALUES (?,?,?,?,?,?,?)",
            (task_id, number, f"task {number}", status, self._now(), self._now(),
             self._now() if status == "done" else None),
        )  # fmt: skip
        if status == "todo":
            self._connection.execute(
                "INSERT INTO work_queue(task_id, number, priority_score, unblocks, ready, running,"
                " computed_at) VALUES (?,?,0,0,1,0,?)",
                (task_id, number, self._now()),
            )
        self._row("task.changed", {"task_id": task_id, "title": f"task {number}", "status": "todo"})
        if status == "done":
            self._row("task.status_changed", {"task_id": task_id, "from": "todo", "to": "done"})
        hook = {"agent_session": f"a-{number // 50}", "agent": "claude", "task_id": task_id}
        for tool in ("Edit", "Bash"):
            self._row("agent.hook", {**hook, "event": "PostToolUse", "tool": tool, "at": ""})


def _wave_rows(wave_id: str, ordinal: int) -> Iterator[tuple[str, dict[str, object]]]:
    wave: dict[str, object] = {"ordinal": ordinal}
    message = {"message_id": f"m-{wave_id}", "role": "agent"}
    yield "wave.created", {**wave, "event_id": None}
    yield "wave.started", {**wave, "phase": "observing"}
    yield "observation.jobs", {"planned": 4, "done": 4, "failed": 0, "timed_out": 0, "refused": {},
                               "sources": {"file": {"done": 4}}, "latency_ms": {"p50": 3}}  # fmt: skip
    yield "wave.advanced", {**wave, "phase": "orienting"}
    yield "orientation.packet.compiled", {
        **wave, "digest": "9f31c2e8a40b", "token_used": 54_000, "token_budget": 150_000, "facts": 186,
        "dropped": 24, "drops": {}, "bands": BANDS,
    }  # fmt: skip
    yield "wave.advanced", {**wave, "phase": "deciding"}
    yield "model.called", {"model": "offline", "attempt": 1}
    yield "message.started", message
    yield "message.completed", {**message, "text": WORDS, "interrupted": False}
    yield "model.completed", {"model": "offline", "input_tokens": 12_000, "output_tokens": 400,
                              "cached_tokens": 8_000, "cost_usd": 0.033, "stop": "tool"}  # fmt: skip
    yield "plan.committed", {"plan_id": f"pl-{wave_id}", "calls": []}
    yield "wave.advanced", {**wave, "phase": "acting"}
    action = {"action_id": f"x-{wave_id}", "type": "run", "title": "pytest -q"}
    yield "action.queued", {**action, "proposal_id": "", "key": f"k-{wave_id}"}
    yield "action.dispatched", {**action, "attempt": 1}
    yield "action.confirmed", {**action, "summary": "12 passed", "receipt": {}}
    yield "wave.advanced", {**wave, "phase": "learning"}
    yield "wave.completed", {**wave, "phase": "completed"}
