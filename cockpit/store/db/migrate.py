"""The schema, and migrations of later versions: SQL files, each applied once and recorded by checksum.

Specified in ``docs/reference/journal.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import cache
from pathlib import Path

from msgspec import Struct

from cockpit.core.canonical_json import text_digest
from cockpit.core.clock import Clock, format_time
from cockpit.core.errors import StoreCorrupt, StoreTooNew, StoreUnwritable
from cockpit.store.db.check_schema import Rows, check_schema, read_schema

_RECORD = (
    "CREATE TABLE IF NOT EXISTS migrations("
    "name TEXT PRIMARY KEY, checksum TEXT NOT NULL, applied_at TEXT NOT NULL)"
)
KEPT_BACKUPS = 3
"""Backups that are kept, the newest ones."""


class Migration(Struct, frozen=True):
    """One file."""

    name: str
    """``schema``, or as ``0001_more``."""
    sql: str
    checksum: str
    """sha256 of the file's text."""


@cache
def load_migrations() -> tuple[Migration, ...]:
    """Load the migrations of this version, in order."""
    # By path: importlib.resources takes longer than all the rest of opening a store.
    folder = Path(__file__).parent
    files = [folder / "schema.sql", *sorted((folder / "migrations").glob("*.sql"))]
    texts = [(file.stem, file.read_text("utf-8")) for file in files]
    return tuple(Migration(name, sql, text_digest(sql)) for name, sql in texts)


def migrate(
    connection: sqlite3.Connection,
    path: Path,
    clock: Clock,
    migrations: tuple[Migration, ...] | None = None,
    *,
    record: Callable[[sqlite3.Connection, tuple[str, ...]], None] | None = None,
) -> tuple[str, ...]:
    """Bring the file up to this version; returns the names of the migrations applied.

    A file with content is copied to ``backups`` first. ``record`` is called with the names in the same
    transaction. Raises :class:`StoreTooNew` for a file of a newer cockpit and :class:`StoreCorrupt` when a
    recorded migration differs from this version's.
    """
    shipped = load_migrations() if migrations is None else migrations
    if not _check_file(connection, shipped):
        return ()
    if _applied(connection):
        _backup(connection, path, clock)
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have migrated while this one waited for the lock: check again.
        todo = _missing(connection, shipped)
        connection.execute(_RECORD)
        for migration in todo:
            _apply(connection, migration)
            connection.execute(
                "INSERT INTO migrations VALUES (?,?,?)",
                (migration.name, migration.checksum, format_time(clock.now())),
            )
        names = tuple(migration.name for migration in todo)
        if names and record is not None:
            record(connection, names)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return names


def _check_file(
    connection: sqlite3.Connection, shipped: tuple[Migration, ...]
) -> tuple[Migration, ...]:
    """Return the migrations that the file lacks; refuse one whose schema is not that of those it has."""
    connection.execute("BEGIN")  # one snapshot: another process may migrate meanwhile
    try:
        todo = _missing(connection, shipped)
        applied = tuple(migration for migration in shipped if migration not in todo)
        if applied:
            check_schema(connection, _expected_schema(applied))
        return todo
    finally:
        connection.execute("ROLLBACK")


def check_file(connection: sqlite3.Connection) -> None:
    """Refuse a store that this version cannot open, without changing it. Raises what :func:`migrate` does."""
    _check_file(connection, load_migrations())


def is_current(connection: sqlite3.Connection) -> bool:
    """Whether the store has every migration of this version, by its record alone.

    Raises :class:`StoreTooNew` and :class:`StoreCorrupt` as :func:`migrate` does.
    """
    return not _missing(connection, load_migrations())


@cache
def _expected_schema(applied: tuple[Migration, ...]) -> Rows:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.execute(_RECORD)
        for migration in applied:
            _apply(connection, migration)
        return read_schema(connection)


def _apply(connection: sqlite3.Connection, migration: Migration) -> None:
    for statement in _statements(migration.sql):
        connection.execute(statement)


def _applied(connection: sqlite3.Connection) -> dict[str, str]:
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type='table'").fetchall()
    names = {name for (name,) in tables}
    if "migrations" not in names:
        if names:
            raise StoreCorrupt(
                "The database has tables but no record of migrations; it was not created by cockpit. "
                "Move it away and start again."
            )
        return {}
    columns = {name for (_, name, *_) in connection.execute("PRAGMA table_info(migrations)")}
    if not {"name", "checksum"} <= columns:
        raise StoreCorrupt(
            "Another program wrote the database's record of migrations; it was not created by cockpit. "
            "Move it away and start again."
        )
    return dict(connection.execute("SELECT name, checksum FROM migrations").fetchall())


def _missing(
    connection: sqlite3.Connection, shipped: tuple[Migration, ...]
) -> tuple[Migration, ...]:
    applied = _applied(connection)
    names = {migration.name for migration in shipped}
    newer = sorted(set(applied) - names)
    if newer:
        raise StoreTooNew(
            f"The project's database was written by a newer cockpit (it has {', '.join(newer)}). "
            "Nothing was changed; update cockpit to open it."
        )
    for migration in shipped:
        if applied.get(migration.name, migration.checksum) != migration.checksum:
            raise StoreCorrupt(
                f"Migration {migration.name} is recorded with another checksum than this cockpit's. "
                "A modified build of cockpit wrote it; restore a backup or use that build."
            )
    return tuple(migration for migration in shipped if migration.name not in applied)


def _backup(connection: sqlite3.Connection, path: Path, clock: Clock) -> None:
    folder = path.parent / "backups"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink():
        raise StoreUnwritable(
            f"{folder} is a link; cockpit keeps its backups inside the project. Remove the link and "
            "start again."
        )
    folder.chmod(0o700)
    name = format_time(clock.now()).replace(":", "").replace(".", "-")
    # Under another name until it is complete: half a copy is not a backup.
    partial, target = folder / f"{path.stem}-{name}.partial", folder / f"{path.stem}-{name}.db"
    partial.unlink(missing_ok=True)
    partial.touch(mode=0o600, exist_ok=False)
    copy = sqlite3.connect(partial)
    try:
        connection.backup(copy)
        copy.close()
        partial.rename(target)
    except BaseException:
        copy.close()
        partial.unlink(missing_ok=True)
        raise
    for old in sorted(folder.glob(f"{path.stem}-*.db"))[:-KEPT_BACKUPS]:
        old.unlink(missing_ok=True)


@cache
def _statements(sql: str) -> tuple[str, ...]:
    statements: list[str] = []
    pending = ""
    for line in sql.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            statements.append(pending.strip())
            pending = ""
    if pending.strip() and not all(
        line.strip().startswith("--") or not line.strip() for line in pending.splitlines()
    ):
        raise StoreCorrupt(f"A migration ends in an incomplete statement: {pending.strip()[:80]!r}")
    return tuple(statements)
