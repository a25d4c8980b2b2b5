"""Rows that are not read again: never used after anyone else changed them."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from store_world import begin, open_store

from cockpit.core.errors import IllegalTransition, StoreCorrupt
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal import journal, verify_chain
from cockpit.store.journal.event_types import Action
from cockpit.store.sessions import sessions, waves

ADVANCE = """
import sys
from pathlib import Path
from cockpit.store.db.database import Store
from cockpit.store.sessions import waves
with Store.open(Path(sys.argv[1])) as store:
    store.write_now(lambda tx: waves.advance(tx, sys.argv[2], sys.argv[3]))
"""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path) as opened:
        yield opened


def new_wave(tx: Tx) -> waves.Wave:
    return waves.create(tx, session_id=begin(tx), trace_id="t")


def journal_row(tx: Tx) -> int:
    return tx.append_row(Action.SESSION_RUNNING)


def reads(store: Store, table: str, count: int) -> int:
    """Count the reads of a table in ``count`` writes that each append a row to the journal."""
    statements: list[str] = []
    connection = store._writer._connection
    assert connection is not None
    connection.set_trace_callback(statements.append)
    for _ in range(count):
        store.write_now(journal_row)
    connection.set_trace_callback(None)
    return sum(line.startswith("SELECT") and table in line for line in statements)


def test_the_end_of_the_journal_is_read_once(store: Store) -> None:
    store.write_now(journal_row)
    assert reads(store, "journal_head", 5) == 0
    assert store.read_now(verify_chain.verify).ok


def test_rows_are_read_again_after_another_connection_wrote(store: Store) -> None:
    store.write_now(journal_row)
    with open_store(store.path.parent) as other:
        assert other.write_now(journal_row) == store.write_now(journal_row) - 1
        assert other.write_now(journal_row) == store.read_now(journal.last_seq)
    assert store.read_now(verify_chain.verify).ok


def test_a_wave_that_another_process_moved_is_read_again(store: Store) -> None:
    wave = store.write_now(new_wave)
    subprocess.run(
        [sys.executable, "-c", ADVANCE, str(store.path), wave.wave_id, "observing"], check=True
    )
    with pytest.raises(IllegalTransition):
        store.write_now(lambda tx: waves.advance(tx, wave.wave_id, "observing"))
    moved = store.write_now(lambda tx: waves.advance(tx, wave.wave_id, "orienting"))
    assert moved.phase == "orienting"
    assert store.read_now(verify_chain.verify).ok


def test_a_failed_write_leaves_nothing_behind(store: Store) -> None:
    wave = store.write_now(new_wave)

    def fail(tx: Tx) -> None:
        waves.advance(tx, wave.wave_id, "observing")
        raise KeyError("no")

    with pytest.raises(KeyError):
        store.write_now(fail)
    waiting = [store._writer.submit(step) for step in (journal_row, fail, journal_row)]
    assert [type(future.exception(30)) for future in waiting] == [type(None), KeyError, type(None)]
    assert store.write_now(lambda tx: waves.advance(tx, wave.wave_id, "observing")).phase
    assert store.read_now(verify_chain.verify).ok


def test_a_step_that_fails_inside_a_write_takes_its_journal_rows_with_it(store: Store) -> None:
    wave = store.write_now(new_wave)

    def fail(tx: Tx) -> None:
        journal_row(tx)
        waves.advance(tx, wave.wave_id, "observing")
        raise KeyError("no")

    def write(tx: Tx) -> None:
        journal_row(tx)
        with pytest.raises(KeyError):
            tx.attempt(lambda: fail(tx))
        journal_row(tx)
        waves.advance(tx, wave.wave_id, "observing")

    store.write_now(write)
    assert store.read_now(verify_chain.verify).ok


def test_the_trace_follows_the_session_and_its_waves(store: Store) -> None:
    def write(tx: Tx) -> None:
        session_id = begin(tx)
        tx.append_row(Action.SESSION_RUNNING, session_id=session_id)
        first = waves.create(tx, session_id=session_id, trace_id="t")
        waves.advance(tx, first.wave_id, "observing", profile_version=3)
        tx.append_row(Action.SESSION_RUNNING, session_id=session_id)
        sessions.set_profile(tx, session_id, "wide")
        tx.append_row(Action.SESSION_RUNNING, session_id=session_id)

    store.write_now(write)
    rows = [
        row for row in store.read_now(journal.rows) if row.action == str(Action.SESSION_RUNNING)
    ]
    assert [row.profile_version for row in rows] == [None, 3, 3]
    assert rows[-1].profile_id == "wide"


def test_a_missing_end_of_the_journal_stops_the_next_write(store: Store) -> None:
    store.write_now(journal_row)
    with sqlite3.connect(store.path) as another_program:
        another_program.execute("DELETE FROM journal_head")
    another_program.close()
    with pytest.raises(StoreCorrupt, match="recorded end is missing"):
        store.write_now(journal_row)
