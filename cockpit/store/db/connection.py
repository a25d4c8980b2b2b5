"""Opening the database file: pragmas, modes, and SQLite's errors translated into cockpit's.

Specified in ``docs/reference/journal.md``.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from cockpit.core.errors import (
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreGone,
    StoreReadOnly,
    StoreUnwritable,
)

BUSY_TIMEOUT_MS = 10_000
"""Milliseconds that a connection waits for another process's lock."""
READER_KIB = 2_000
"""Memory of a reader for pages, in KiB. It drops all of them after each commit of another connection."""
WRITER_KIB = 4_000
"""Memory of a writer for pages, in KiB: they stay while no other process writes."""
_WAL_ATTEMPTS = 50

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
_FULL = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM}
_UNWRITABLE = {
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_AUTH,
}
_CORRUPT = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_NOT_READ = {sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ}
NO_WRITING = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
"""Errors of the system where a file or folder may not be written."""
_FATAL = _BUSY | _FULL | _UNWRITABLE | _CORRUPT


def connect(
    path: Path,
    *,
    durable: bool = True,
    read_only: bool = False,
    immutable: bool = False,
    busy_timeout_ms: int = BUSY_TIMEOUT_MS,
    factory: type[sqlite3.Connection] = sqlite3.Connection,
) -> sqlite3.Connection:
    """Open a connection in autocommit mode with cockpit's pragmas.

    Transactions are begun explicitly. ``durable`` False is for streamed text only:
    ``synchronous=NORMAL``. An ``immutable`` file is read without its log and without locks. ``factory`` is
    the class of the connection. Raises the errors of :mod:`cockpit.core.errors`. Refuses a file that is a
    link, or one with a link in place of SQLite's own files next to it.
    """
    with translate_errors(path):
        _check(path)
        is_new = not read_only and _make_private(path)
        mode = "?mode=ro&immutable=1" if immutable else "?mode=ro" if read_only else ""
        uri = f"{path.as_uri()}{mode}"
        connection = sqlite3.connect(
            uri,
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
            timeout=busy_timeout_ms / 1000,
            factory=factory,
        )
        try:
            connection.execute(f"PRAGMA busy_timeout={busy_timeout_ms}")
            # A function that a file's own schema calls may have no effect beyond its result.
            connection.execute("PRAGMA trusted_schema=OFF")
            if is_new:
                # Deleted rows' pages can then be given back beside other writers.
                connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
            if not read_only:
                _into_wal(connection)
            connection.execute("PRAGMA foreign_keys=ON")
            # So that triggers which protect rows also fire for rows that REPLACE removes.
            connection.execute("PRAGMA recursive_triggers=ON")
            connection.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
            connection.execute("PRAGMA temp_store=MEMORY")
            connection.execute(f"PRAGMA cache_size=-{READER_KIB if read_only else WRITER_KIB}")
        except BaseException:
            connection.close()
            raise
        return connection


def _into_wal(connection: sqlite3.Connection) -> None:
    """Switch to WAL, even while other processes switch the same new file."""
    for _ in range(_WAL_ATTEMPTS):
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in _BUSY:
                raise
        # SQLite does not wait for the lock of this switch, but it does for a transaction's.
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
    connection.execute("PRAGMA journal_mode=WAL")


def _check(path: Path) -> None:
    for place in _files(path):
        try:
            mode = place.lstat().st_mode
        except FileNotFoundError:
            continue
        if not stat.S_ISREG(mode):
            kind = "a link" if stat.S_ISLNK(mode) else "not a regular file"
            raise StoreUnwritable(
                f"{place} is {kind}; cockpit keeps its state in files of its own, inside the project."
                " Move it away and start again."
            )


def _make_private(path: Path) -> bool:
    """Create the file if it is missing, and restrict it and SQLite's files to the owner.

    Returns whether the file is new.
    """
    try:
        # An existing file is not opened: closing it would drop this process's locks on it.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        for place in _files(path):
            _narrow(place)
        return False
    return True


def _narrow(place: Path) -> None:
    try:
        info = place.stat()
    except FileNotFoundError:
        return
    if info.st_mode & 0o077 and info.st_uid == os.geteuid():
        place.chmod(0o600)


def _files(path: Path) -> tuple[Path, ...]:
    return (path, *(path.with_name(path.name + end) for end in ("-wal", "-shm", "-journal")))


@contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Translate SQLite's and the system's errors into those of :mod:`cockpit.core.errors`."""
    try:
        yield
    except (sqlite3.Error, UnicodeEncodeError) as error:
        ours = as_store_error(path, error)
        if ours is error:
            raise
        raise ours from error
    except OSError as error:
        kind = StoreReadOnly if error.errno in NO_WRITING else StoreUnwritable
        raise kind(
            f"{path} cannot be used: {error.strerror or error}. Check its folder's permissions."
        ) from error


def is_fatal(error: BaseException) -> bool:
    """Tell whether the file, the disk or the lock caused an error, rather than the statement.

    Then nothing of the transaction can be kept.
    """
    return _code(error) in _FATAL


def as_store_error(path: Path, error: BaseException) -> BaseException:
    """Return cockpit's error for one of SQLite's; any other error is returned as it is."""
    if isinstance(error, UnicodeEncodeError):
        translated: StoreError = StoreError(
            f"{path}: this text is not Unicode and was not stored: {error}."
        )
    elif isinstance(error, sqlite3.Error):
        store_error = _classify(path, error)
        if store_error is None:
            return error
        translated = store_error
    else:
        return error
    translated.__cause__ = error
    return translated


def _classify(path: Path, error: sqlite3.Error) -> StoreError | None:
    message, code = str(error), _code(error)
    if code in _BUSY:
        return StoreBusy(
            f"Another process kept {path} locked. Nothing was changed; try again, and close programs "
            "that keep the file open."
        )
    if getattr(error, "sqlite_errorcode", None) in _NOT_READ:
        return StoreUnwritable(
            f"{path} could not be read: {message}. Nothing was changed. Check its disk, and try again."
        )
    if code in _FULL:
        return StoreUnwritable(
            f"{path} could not be written: {message}. Nothing of this step was stored. "
            "Free some disk space and try again."
        )
    if code == sqlite3.SQLITE_CANTOPEN and not path.exists():
        return StoreGone(
            f"{path} is not there: it was deleted or moved. Put it back, or start cockpit again."
        )
    if code in _UNWRITABLE:
        return StoreReadOnly(
            f"{path} cannot be opened for writing: {message}. Check the permissions of the file and "
            "of its folder."
        )
    if code in _CORRUPT:
        return _name_damage(path, message)
    if isinstance(error, (sqlite3.IntegrityError, sqlite3.ProgrammingError)):
        return None
    return StoreError(f"{path}: {message}")


def _name_damage(path: Path, message: str) -> StoreError:
    """Return the error of a file that SQLite could not understand.

    It is damaged if SQLite's own check says so: a disk that fails for a moment gives the same message.
    """
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
            (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.Error as error:
        verdict = str(error) if _code(error) in _CORRUPT else ""
        if not verdict:
            return StoreUnwritable(
                f"{path} could not be read ({message}), nor checked ({error}). Nothing was changed. Check its"
                " disk, and try again."
            )
    if verdict == "ok":
        return StoreUnwritable(
            f"{path} could not be read for a moment ({message}); it is whole, and nothing was changed. Try"
            " again, and check its disk if that repeats."
        )
    return StoreCorrupt(
        f"{path} is damaged or not a cockpit database ({verdict}). Move it away and start again, or "
        "restore a copy from the backups folder next to it."
    )


def _code(error: BaseException) -> int | None:
    """Return SQLite's primary result code, if the error has one."""
    code = getattr(error, "sqlite_errorcode", None)
    return code & 0xFF if isinstance(code, int) else None
