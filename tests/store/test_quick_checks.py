"""Tables whose states are compared one by one: stores from before open, verify, and refuse the same."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from store.store_world import begin, open_store

from cockpit.core.clock import CountingIds, FixedClock
from cockpit.store.db import migrate
from cockpit.store.db.connection import WritingConnection, connect
from cockpit.store.db.database import Store
from cockpit.store.db.row_cache import RowCache
from cockpit.store.db.transaction import Tx
from cockpit.store.journal import journal, verify_chain, verify_tables
from cockpit.store.journal.details.store import StoreMigrated
from cockpit.store.sessions import outbox, waves

MIGRATION = "0034_quick_checks"


def write(tx: Tx) -> tuple[str, str]:
    session_id = begin(tx)
    wave = waves.create(tx, session_id=session_id, trace_id="t")
    planned = outbox.plan(
        tx, wave_id=wave.wave_id, session_id=session_id, position=1, key="k-1", action_type="run",
        title="run it", payload={"argv": ["true"]},
    )  # fmt: skip
    outbox.enqueue(tx, planned.action_id, proposal_id=None, payload=planned.payload)
    outbox.dispatch(tx, planned.action_id, "owner")
    outbox.confirm(tx, planned.action_id, summary="done", detail={})  # its receipt points to it
    return wave.wave_id, planned.action_id


def write_older_store(path: Path) -> tuple[str, str]:
    """Write a store of the version before the migration; return a wave and an action of it."""
    connection, clock = connect(path, factory=WritingConnection), FixedClock()

    def open_tx() -> Tx:
        return Tx(connection, clock, CountingIds(), journal.Tail(connection), RowCache(connection))

    def record(_: sqlite3.Connection, names: tuple[str, ...]) -> None:
        tx = open_tx()
        tx.journal(StoreMigrated(migrations=names))
        tx.settle()

    older = tuple(each for each in migrate.load_migrations() if each.name < MIGRATION)
    migrate.migrate(connection, path, clock, older, record=record)
    tx = open_tx()
    tx.begin()
    ids = write(tx)
    tx.settle()
    connection.execute("COMMIT")
    connection.close()
    return ids


def test_a_store_from_before_opens_and_verifies(tmp_path: Path) -> None:
    wave_id, action_id = write_older_store(tmp_path / "cockpit.db")
    with open_store(tmp_path) as store:
        assert store.read_now(lambda c: waves.load(c, wave_id)).phase == "created"
        assert store.read_now(lambda c: outbox.load(c, action_id)).phase == "confirmed"
        assert store.read_now(verify_chain.verify).ok
        assert store.read_now(verify_tables.verify_tables).faults == ()
        assert store.read_now(lambda c: c.execute("PRAGMA foreign_key_check").fetchall()) == []
        store.write_now(lambda tx: waves.advance(tx, wave_id, "observing"))
        assert store.read_now(verify_tables.verify_tables).faults == ()


def test_a_phase_or_result_that_is_none_is_refused(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        store.write_now(write)
        for column in ("wave_runs SET phase", "outbox_actions SET phase", "journal SET result"):
            for value in ("", "Created", "queued ", "OK", None):
                with pytest.raises(sqlite3.IntegrityError, match="constraint failed"):
                    store.write_now(lambda tx, c=column, v=value: tx.execute(f"UPDATE {c}=?", (v,)))


class Protected(WritingConnection):
    """Does what SQLite does where a build protects its schema: it ignores the pragma that opens it."""

    def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        return super().execute(
            sql.replace("writable_schema = ON", "writable_schema = OFF"), *parameters
        )


def test_a_build_that_protects_its_schema_keeps_the_old_check(tmp_path: Path) -> None:
    write_older_store(tmp_path / "cockpit.db")
    for factory in (Protected, WritingConnection):  # migrated by one, used by both
        with Store.open(tmp_path / "cockpit.db", factory=factory) as store:
            kept = "SELECT count(*) FROM sqlite_schema WHERE sql LIKE '%result IN (%'"
            assert store.read_now(lambda c, s=kept: c.execute(s).fetchone()) == (1,)
            store.write_now(begin)
            assert store.read_now(verify_chain.verify).ok
            with pytest.raises(sqlite3.IntegrityError, match="constraint failed"):
                store.write_now(lambda tx: tx.execute("UPDATE journal SET result='fine'"))
