"""A store whose schema is not cockpit's is refused before anything of it runs."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from cockpit.core.clock import SystemClock
from cockpit.core.errors import StoreError
from cockpit.store.db import migrate
from cockpit.store.db.check_schema import StoreForeign
from cockpit.store.db.connection import connect
from cockpit.store.db.database import Store

FOREIGN = {
    "a trigger": "CREATE TRIGGER mine AFTER INSERT ON journal BEGIN DELETE FROM notes; END",
    "a view": "CREATE VIEW mine AS SELECT * FROM journal",
    "a table": "CREATE TABLE mine(a)",
    "an index": "CREATE INDEX mine ON journal(actor)",
    "a temporary-looking name": "CREATE TRIGGER sqlit_stat1 AFTER INSERT ON journal BEGIN SELECT 1; END",
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    Store.open(tmp_path / "cockpit.db").close()
    return tmp_path / "cockpit.db"


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def test_an_object_that_is_not_ours_is_refused_by_name(path: Path) -> None:
    for statement in FOREIGN.values():
        change(path, statement)
        before = path.read_bytes()
        _, kind, name, *_ = statement.split()
        with pytest.raises(StoreForeign, match=name.partition("(")[0]):
            Store.open(path)
        assert path.read_bytes() == before
        change(path, f"DROP {kind} {name.partition('(')[0]}")


def test_ours_that_is_gone_or_rewritten_is_refused(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        (trigger, sql) = connection.execute(
            "SELECT name, sql FROM sqlite_schema WHERE type='trigger' LIMIT 1"
        ).fetchone()
    change(path, f"DROP TRIGGER {trigger}")
    with pytest.raises(StoreForeign, match=trigger):
        Store.open(path)
    change(path, sql)
    Store.open(path).close()
    change(
        path,
        "PRAGMA writable_schema=ON",
        f"UPDATE sqlite_schema SET sql=replace(sql, 'BEGIN', 'BEGIN SELECT 1;') WHERE name='{trigger}'",
    )
    with pytest.raises(StoreForeign, match=trigger):
        Store.open(path)


def test_a_trigger_named_like_sqlite_s_own_tables_is_refused(path: Path) -> None:
    change(
        path,
        "CREATE TRIGGER mine AFTER INSERT ON journal BEGIN SELECT 1; END",
        "PRAGMA writable_schema=ON",
        "UPDATE sqlite_schema SET name='sqlite_stat1' WHERE name='mine'",
    )
    with pytest.raises(StoreError, match="sqlite_stat1"):
        Store.open(path)


def test_an_older_store_is_looked_at_before_it_is_migrated(path: Path) -> None:
    change(path, "CREATE TRIGGER mine AFTER INSERT ON migrations BEGIN DELETE FROM journal; END")
    later = migrate.Migration("9000_more", "CREATE TABLE more(a);\n", "c" * 64)
    with closing(connect(path)) as connection, pytest.raises(StoreForeign, match="mine"):
        migrate.migrate(connection, path, SystemClock(), (*migrate.load_migrations(), later))


def test_what_versions_of_sqlite_write_differently_is_no_difference(path: Path) -> None:
    change(path, "ANALYZE")
    Store.open(path).close()
    change(
        path,
        "PRAGMA writable_schema=ON",
        "UPDATE sqlite_schema SET sql=replace(sql, 'CREATE TABLE ', 'CREATE  TABLE ')",
    )
    Store.open(path).close()
