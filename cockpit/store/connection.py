"""Opening the file: pragmas, modes, and SQLite's errors turned into ours."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cockpit.store.errors import (
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreUnwritable,
)

BUSY_TIMEOUT_MS = 10_000


def connect(
    path: Path,
    *,
    durable: bool = True,
    read_only: bool = False,
    busy_timeout_ms: int = BUSY_TIMEOUT_MS,
) -> sqlite3.Connection:
    """A connection in autocommit mode with our pragmas; transactions are begun explicitly.

    ``durable`` False is for streamed text alone: ``synchronous=NORMAL``. Raises the typed errors of
    :mod:`cockpit.store.errors`.
    """
    with translated(path):
        if not read_only and not path.exists():
            path.touch(mode=0o600)
        uri = f"{path.as_uri()}{'?mode=ro' if read_only else ''}"
        connection = sqlite3.connect(
            uri,
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
            timeout=busy_timeout_ms / 1000,
        )
        try:
            connection.execute(f"PRAGMA busy_timeout={busy_timeout_ms}")
            if not read_only:
                connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA foreign_keys=ON")
            connection.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
            connection.execute("PRAGMA temp_store=MEMORY")
            connection.execute("PRAGMA cache_size=-16000")
        except BaseException:
            connection.close()
            raise
        return connection


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn SQLite's and the system's errors into typed ones that tell a person what to do."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise _operational(path, error) from error
    except sqlite3.DatabaseError as error:
        if isinstance(error, (sqlite3.IntegrityError, sqlite3.ProgrammingError)):
            raise
        raise _corrupt(path, error) from error
    except OSError as error:
        raise StoreUnwritable(
            f"{path} cannot be used: {error.strerror or error}. Check its folder's permissions."
        ) from error


def _operational(path: Path, error: sqlite3.OperationalError) -> StoreError:
    words = str(error)
    code = getattr(error, "sqlite_errorname", "") or ""
    if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")) or "locked" in words:
        return StoreBusy(
            f"{path} is locked by another process (waited {BUSY_TIMEOUT_MS // 1000} s). "
            "Nothing was changed; try again, and close a program that keeps the file open."
        )
    if code.startswith(("SQLITE_FULL", "SQLITE_IOERR")):
        return StoreUnwritable(
            f"{path} could not be written: {words}. Nothing of this step was stored; "
            "free some disk space and try again."
        )
    if code.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
        return StoreUnwritable(
            f"{path} cannot be opened for writing: {words}. Check the permissions of the file and "
            "of its folder."
        )
    if code.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return _corrupt(path, error)
    return StoreError(f"{path}: {words}")


def _corrupt(path: Path, error: Exception) -> StoreCorrupt:
    return StoreCorrupt(
        f"{path} is damaged or not a cockpit database ({error}). Move it away and start again, or "
        "put back a copy from the backups beside it."
    )
