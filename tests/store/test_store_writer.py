"""The writer: whatever goes wrong, every caller hears of it, and the next write is served."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from store.store_world import PATIENCE_S, hold_writer, open_store

from cockpit.core.errors import StoreBusy, StoreError, StoreUnwritable
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal import journal, verify_chain
from cockpit.store.journal.event_types import Action


def row(tx: Tx) -> int:
    return tx.append_row(Action.SESSION_RUNNING)


def rows(store: Store) -> int:
    return len(store.read_now(journal.rows))


def test_a_listener_that_raises_harms_nobody_and_writes_on_no_screen(tmp_path, capfd):
    def fail() -> None:
        raise RuntimeError("Event loop is closed")

    heard: list[int] = []
    with open_store(tmp_path) as store:
        stop = store.on_commit(fail)
        store.on_commit(lambda: heard.append(1))
        store.write_now(row)
        stop()
        stop()
        store.write_now(row)
    assert (len(heard), capfd.readouterr()) == (2, ("", ""))


def test_a_write_that_changes_nothing_wakes_nobody(tmp_path: Path) -> None:
    heard: list[int] = []
    with open_store(tmp_path) as store:
        store.on_commit(lambda: heard.append(1))
        store.write_now(lambda tx: tx.execute("UPDATE sessions SET status='waiting'"))
        assert heard == []
        store.write_now(lambda tx: tx.append_row(Action.SESSION_RUNNING))
        assert heard == [1]


async def test_one_steps_own_error_takes_nothing_from_the_others(tmp_path: Path) -> None:
    def malformed(tx: Tx) -> None:
        row(tx)
        tx.execute("SELECT json_extract('{', '$.a')").fetchone()

    def illegal(tx: Tx) -> None:
        row(tx)
        tx.execute("INSERT INTO wave_runs(wave_id) VALUES ('w')")

    def mistaken(tx: Tx) -> None:
        row(tx)
        raise KeyError("mine")

    def leaving(tx: Tx) -> None:
        row(tx)
        raise SystemExit(3)

    steps = (row, malformed, row, illegal, row, mistaken, row, leaving, row)
    with open_store(tmp_path) as store:
        before = rows(store)
        go = hold_writer(store)
        waiting = [store._writer.submit(step) for step in steps]
        go()
        ends = [future.exception(PATIENCE_S) for future in waiting]
        assert [type(end) for end in ends] == [
            type(None), StoreError, type(None), sqlite3.IntegrityError, type(None),
            KeyError, type(None), SystemExit, type(None),
        ]  # fmt: skip
        assert rows(store) == before + 5
        assert store.read_now(verify_chain.verify).ok


class Failing(sqlite3.Connection):
    """A connection whose chosen statements fail as SQLite's do."""

    words: tuple[str, ...] = ()
    code = sqlite3.SQLITE_IOERR

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        if sql.startswith(self.words or ("nothing",)):
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = self.code
            raise error
        return super().execute(sql, *values)


@pytest.mark.parametrize(
    "words",
    [
        ("BEGIN",),
        ("COMMIT",),
        ("COMMIT", "ROLLBACK"),
        ("SAVEPOINT",),
        ("RELEASE",),
        ("RELEASE", "ROLLBACK"),
        ("ROLLBACK TO",),
        ("ROLLBACK",),
        ("INSERT INTO journal",),
        ("INSERT INTO journal", "ROLLBACK"),
    ],
)
def test_a_failing_transaction_answers_everybody_and_leaves_nothing(tmp_path, words):
    class Mine(Failing):
        pass

    def wrong(tx: Tx) -> None:
        row(tx)
        raise KeyError("mine")

    def arm() -> None:
        Mine.words = words

    with open_store(tmp_path, factory=Mine) as store:
        before = rows(store)
        go = hold_writer(store)
        waiting = [store._writer.submit(step) for step in (row, wrong, row)]
        stop = store.on_commit(arm)
        go()
        ends = [future.exception(PATIENCE_S) for future in waiting]
        stop()
        Mine.words = ()
        assert [type(end) for end in ends[::2]] == [StoreUnwritable, StoreUnwritable]
        assert isinstance(ends[1], (StoreUnwritable, KeyError))
        assert rows(store) == before
        store.write_now(row)
        assert rows(store) == before + 1
        assert store.read_now(verify_chain.verify).ok


def test_every_write_handed_over_while_closing_is_answered(tmp_path: Path) -> None:
    for turn in range(3):
        folder = tmp_path / str(turn)
        folder.mkdir()
        store = open_store(folder)
        started = threading.Barrier(5)

        def hand_over(store: Store = store, started: threading.Barrier = started) -> int:
            started.wait(PATIENCE_S)
            done = 0
            while True:
                try:
                    future = store._writer.submit(row)
                except StoreError:
                    return done
                future.result(PATIENCE_S)
                done += 1

        with ThreadPoolExecutor(4) as pool:
            callers = [pool.submit(hand_over) for _ in range(4)]
            started.wait(PATIENCE_S)
            store.close()
            stored = [caller.result(PATIENCE_S) for caller in callers]
        with open_store(folder) as again:
            assert rows(again) == 1 + sum(stored)


def test_a_closed_store_says_so_and_a_listener_cannot_close_it(tmp_path: Path) -> None:
    refused: list[str] = []
    store = open_store(tmp_path)

    def close() -> None:
        try:
            store.close()
        except StoreError as error:
            refused.append(str(error))

    store.on_commit(close)
    store.write_now(row)
    assert "cannot close" in refused[0]
    store.close()
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.write_now(row)
    with pytest.raises(StoreError, match="closed"):
        store.read_now(journal.last_seq)


def test_a_write_inside_a_write_is_refused_and_not_waited_for(store: Store) -> None:
    with pytest.raises(StoreError, match="one step"):
        store.write_now(lambda _: store.write_now(row))


async def test_a_cancelled_write_that_has_not_begun_is_dropped(store: Store) -> None:
    before = rows(store)
    go = hold_writer(store)
    waiting = [asyncio.ensure_future(store.write(row)) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[1].cancel()
    await asyncio.sleep(0)
    go()
    done = await asyncio.gather(*waiting, return_exceptions=True)
    assert isinstance(done[1], asyncio.CancelledError)
    assert rows(store) == before + 2


def test_a_file_that_is_locked_is_busy_and_stays_usable(tmp_path: Path) -> None:
    with open_store(tmp_path, busy_timeout_ms=20) as store:
        other = sqlite3.connect(store.path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusy, match="try again"):
            store.write_now(row)
        other.execute("ROLLBACK")
        other.close()
        store.write_now(row)
        assert store.read_now(verify_chain.verify).ok
