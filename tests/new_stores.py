"""Make new stores of tests from a copy of one that was migrated once: 200 statements less for each.

What a migration writes of its own (its time, the journal's row) is written to the copy, in one transaction
as ever. Commits do not wait for the disk: that guards against a loss of power, which no test can cause, and
a killed process has lost nothing without it. The tests of opening and processes that start from nothing
migrate in full and wait.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

from cockpit.core.clock import Clock, SystemClock, format_time
from cockpit.store.db import connection, database, migrate
from cockpit.store.journal import seals, verify_tables

_UNSTAMPED = 77
"""The ``user_version`` of a copy that lacks the times and the row of its migrations."""

_connect = database.connect
_migrate = database.migrate
_read_shapes = verify_tables.read_shapes
_stamping: set[int] = set()
"""The ``id`` of each connection to a copy that is being stamped."""


def install() -> None:
    """Let stores that this process creates be copies, and those that processes forked from it create."""
    _template()
    database.connect = _connect_to_copy
    database.migrate = _stamp
    verify_tables.read_shapes = _read_shapes_with_rows


def uninstall() -> None:
    """Let them be migrated from the first statement to the last."""
    database.connect = _connect
    database.migrate = _migrate
    verify_tables.read_shapes = _read_shapes


@cache
def _template() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "template.db"
        with closing(connection.connect(path)) as new:
            migrate.migrate(new, path, SystemClock())
            new.execute(f"PRAGMA user_version={_UNSTAMPED}")
        return path.read_bytes()


@cache
def _shapes_with_rows() -> dict[str, seals.Shape]:
    """The sealed tables that have rows in a new store: of forty, a few."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "template.db"
        path.write_bytes(_template())
        with closing(connection.connect(path)) as new:
            return {
                table: shape
                for table, shape in _read_shapes(new).items()
                if new.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone()
            }


def _read_shapes_with_rows(asked: sqlite3.Connection) -> dict[str, seals.Shape]:
    """Leave out the empty tables of a new store, in whose rows is nothing to seal."""
    return _shapes_with_rows() if id(asked) in _stamping else _read_shapes(asked)


def _connect_to_copy(path: Path, *, read_only: bool = False, **options: Any) -> sqlite3.Connection:
    if not read_only and not path.exists() and path.parent.is_dir():
        _copy_to(path)
    connected = _connect(path, read_only=read_only, **options)
    if not read_only:
        # Not as a subclass would: some count what is executed, or let it fail.
        sqlite3.Connection.execute(connected, "PRAGMA synchronous=OFF")
    return connected


def _copy_to(path: Path) -> None:
    """Create the file whole, or leave the one that another process created meanwhile."""
    try:
        handle, partial = tempfile.mkstemp(dir=path.parent, prefix=".new-store-")
    except OSError:
        return  # what is wrong with the folder is for cockpit to say
    try:
        with open(handle, "wb") as file:
            file.write(_template())
        os.link(partial, path)
    except FileExistsError:
        return
    finally:
        Path(partial).unlink()


def _stamp(
    new: sqlite3.Connection,
    path: Path,
    clock: Clock,
    migrations: tuple[migrate.Migration, ...] | None = None,
    *,
    record: Callable[[sqlite3.Connection, tuple[str, ...]], None] | None = None,
    prepare: Callable[[sqlite3.Connection], None] | None = None,
) -> tuple[str, ...]:
    """Do for a copy what migrating does besides its statements; migrate all other files."""
    if migrations is not None or not _is_unstamped(new):
        return _migrate(new, path, clock, migrations, record=record, prepare=prepare)
    new.execute("BEGIN IMMEDIATE")
    try:
        names: tuple[str, ...] = ()
        if _is_unstamped(new):
            names = tuple(migration.name for migration in migrate.load_migrations())
            for name in names:
                stamp = (format_time(clock.now()), name)
                new.execute("UPDATE migrations SET applied_at=? WHERE name=?", stamp)
            if record is not None:
                _record(new, names, record)
            new.execute("PRAGMA user_version=0")
        new.execute("COMMIT")
    except BaseException:
        if new.in_transaction:
            new.execute("ROLLBACK")
        raise
    return names


def _record(
    new: sqlite3.Connection,
    names: tuple[str, ...],
    record: Callable[[sqlite3.Connection, tuple[str, ...]], None],
) -> None:
    _stamping.add(id(new))
    try:
        record(new, names)
    finally:
        _stamping.discard(id(new))


def _is_unstamped(new: sqlite3.Connection) -> bool:
    (version,) = new.execute("PRAGMA user_version").fetchone()
    return bool(version == _UNSTAMPED)
