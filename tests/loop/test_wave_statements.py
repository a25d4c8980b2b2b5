"""What a wave asks of the store: few statements, two commits, and nothing that it misses by that."""

from __future__ import annotations

import asyncio
import sqlite3
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cockpit.core.project_paths import locate_project
from cockpit.decide.measure_prompt import digest_prompt
from cockpit.loop import session_loop
from cockpit.loop.phases.wave_prompt import render_stored_prompt
from cockpit.loop.runtime import open_runtime
from cockpit.loop.runtime_settings import Limits, RuntimeSettings
from cockpit.store.db import database
from cockpit.store.db.connection import WritingConnection
from cockpit.store.db.database import Store
from cockpit.store.journal import head_anchor, journal, verify_chain
from cockpit.store.journal.event_types import Action
from cockpit.store.sessions import messages, sessions, waves

pytestmark = pytest.mark.slow

WAVES = 12
MOST_STATEMENTS = 56
MOST_COMMITS = 2
SCENARIO = """
[[turn]]
text = "Once more."
[[turn.call]]
name = "request_context"
arguments = {{ purpose = "a test", question = "what is in it?", scope = ["file:a.py"], escalation = "" }}
[[turn]]
when = {{ wave_from = {last} }}
[[turn.call]]
name = "finish"
arguments = {{ status = "done", summary = "done" }}
"""


class Counting(WritingConnection):
    """Counts statements, each row of an ``executemany`` as one.

    Those that open a connection do not count: how many readers there are at once, and in which wave the next
    one is opened, is for the machine's load to say.
    """

    counted = 0
    is_open = False

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        Counting.counted += self.is_open
        return super().execute(sql, *values)

    def executemany(self, sql: str, parameters: Any) -> sqlite3.Cursor:
        rows = list(parameters)
        Counting.counted += len(rows) * self.is_open
        return super().executemany(sql, rows)


def count_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count what every connection of the store runs, without what comes from the clock."""
    plain = database.connect

    def connect(path: Path, **more: Any) -> sqlite3.Connection:
        connection = plain(path, **{**more, "factory": Counting})
        assert isinstance(connection, Counting)
        connection.is_open = True
        return connection

    monkeypatch.setattr(database, "connect", connect)
    # On a slow machine the lease is renewed, or the anchor written, in the middle of a wave.
    monkeypatch.setattr(session_loop, "HEARTBEAT_S", 1e6)
    monkeypatch.setattr(head_anchor, "SECONDS", 1e6)


def play(folder: Path, between: Any = None) -> tuple[Path, str, list[tuple[int, int]]]:
    """Run a session of :data:`WAVES` waves; returns the store, the session, and both counts by wave.

    ``between`` is called with the store's file and the session before the sixth wave.
    """
    root = folder / "project"
    root.mkdir()
    (root / "a.py").write_text("print('a')\n")
    script = folder / "scenario.toml"
    script.write_text(SCENARIO.format(last=WAVES))
    settings = RuntimeSettings(policy="all", limits=Limits(max_waves=20), user_dir=folder)
    place = locate_project(root)
    counts: list[tuple[int, int]] = []

    async def run() -> str:
        async with open_runtime(place, settings) as runtime:
            session_id = await runtime.start(
                "investigate", model=f"script:{script}", interactive=False
            )
            begun = 0

            def look() -> None:
                nonlocal begun
                ordinal = runtime.store.read_now(
                    lambda c: c.execute("SELECT max(ordinal) FROM wave_runs").fetchone()[0]
                )
                if ordinal and ordinal > begun:
                    begun = ordinal
                    Counting.counted -= 3
                    counts.append((Counting.counted, runtime.store.commits))
                    if between and ordinal == 6:
                        between(place.database, session_id)
                else:
                    Counting.counted -= 3

            stop = runtime.store.on_commit(look)
            session = await runtime.run(session_id)
            stop()
            assert session.result["status"] == "done"
            # A session whose type was changed is described with the tools of its new type.
            for ordinal in range(1, 1 if between else WAVES + 1):
                wave_id = waves.wave_id_of(session_id, ordinal)
                runtime.engine.texts.forget()
                prompt, packet = runtime.store.read_now(
                    partial(render_stored_prompt, engine=runtime.engine, wave_id=wave_id)
                )
                assert packet.rendering is not None
                assert digest_prompt(prompt) == packet.rendering.prompt_sha256
        return session_id

    return place.database, asyncio.run(run()), counts


def test_a_wave_takes_few_statements_and_two_commits(tmp_path, monkeypatch):
    count_statements(monkeypatch)
    _, _, counts = play(tmp_path)
    first, last = counts[2], counts[-2]
    waves_between = WAVES - 4
    # The whole of several waves: the next phase may be under way when a commit is heard of.
    assert last[0] - first[0] <= MOST_STATEMENTS * waves_between + 5, counts
    assert last[1] - first[1] <= MOST_COMMITS * waves_between, counts


def test_a_reader_that_is_opened_in_a_wave_is_no_statement_of_it(tmp_path, monkeypatch):
    count_statements(monkeypatch)
    with Store.open(tmp_path / "cockpit.db") as store:

        def look_inside(connection: sqlite3.Connection) -> int:
            connection.execute("SELECT 1")
            # Both readers are in use at once, so that the second one is opened here.
            return int(store.read_now(lambda inner: inner.execute("SELECT 2").fetchone()[0]))

        for _ in range(2):
            before = Counting.counted
            assert store.read_now(look_inside) == 2
            assert Counting.counted - before == 6


def test_what_another_process_writes_between_two_waves_is_taken_in(tmp_path):
    def between(path: Path, session_id: str) -> None:
        with Store.open(path) as other:
            other.write_now(
                lambda tx: messages.complete(
                    tx, session_id=session_id, role="person", text="Look at b.py as well."
                )
            )
            other.write_now(lambda tx: sessions.change(tx, session_id, task_type="implement"))

    path, session_id, _ = play(tmp_path, between)
    with Store.open(path) as store:
        facts = store.read_now(
            lambda c: c.execute(
                "SELECT source_ref, ordinal FROM session_facts WHERE session_id=?"
                " AND source_type IN ('person','notice') ORDER BY ordinal",
                (session_id,),
            ).fetchall()
        )
        assert [ref for ref, _ in facts] == ["notice:task-type-1", "person:1"] or [
            ref for ref, _ in facts
        ] == ["person:1", "notice:task-type-1"]
        assert {ordinal for _, ordinal in facts} == {7}
        assert store.read_now(verify_chain.verify).ok
        begun = store.read_now(lambda c: journal.rows(c, action=str(Action.WAVE_OBSERVED)))
        assert len(begun) == WAVES
