"""Restore a project's state from a backup: whole, or not at all.

Everything is unpacked and verified in a folder inside the state. Then SQLite writes the database in one
transaction, which decides: a row of its journal says that this backup was restored. A process that is killed
before leaves the old state; one that is killed later leaves files to put in place, which the next command
does first. Specified in ``docs/how-to/backup.md``.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec

from cockpit.core.clock import SystemClock, format_time
from cockpit.core.errors import StoreBusy, StoreCorrupt
from cockpit.core.project_paths import ROOT_TOKEN, ProjectPaths
from cockpit.core.read_record import decode_json
from cockpit.core.state_folder import DATABASE
from cockpit.store.backup.backup_file import BackupRefused, Contents, sync_folder, unpack
from cockpit.store.backup.write_backup import check_database
from cockpit.store.chains import worktrees
from cockpit.store.db.connection import connect, translate_errors
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.store import JournalAnchored
from cockpit.store.journal.head_anchor import HeadAnchor, find_anchor_file, last_row, write_anchor

FOLDER = "restore"
"""The folder of a state in which a backup is prepared."""
DAMAGED = ".damaged"
"""What the name of a damaged database ends with, once a backup took its place."""
_READY = "ready.json"
_LOCK = "lock"
_STATE = "state"


class Ready(msgspec.Struct, frozen=True):
    """The file ``ready.json``: what was prepared is whole and verified."""

    seq: int
    """The row of the restored journal that records the restoration; no other store has it."""
    digest: str
    files: tuple[str, ...]
    """The files beside the database."""


def restore_backup(source: Path, place: ProjectPaths, *, replace: bool) -> Contents:
    """Make the backup ``source`` the state of ``place``.

    Worktrees and the index of knowledge stay as they are; a database that is damaged is kept beside the new
    one. Raises :class:`BackupRefused` where there is a
    state and ``replace`` is False, where another process uses it, and for a backup that is not whole;
    ``StoreCorrupt`` and ``StoreTooNew`` for its database. The state is then as it was.
    """
    if not replace and place.database.exists():
        raise BackupRefused(
            f"{place.home} has a state; nothing was changed. Back it up, then pass --replace."
        )
    place.prepare()
    finish_restore(place)
    folder = place.state / FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    with _locked(folder):
        _clear(folder)
        contents = _prepare(source, folder, place)
        try:
            _write_database(folder / _STATE / DATABASE, place.database)
        except StoreCorrupt:
            _replace_database(folder / _STATE / DATABASE, place.database)
        _put_in_place(folder, place)
        shutil.rmtree(folder, ignore_errors=True)
    return contents


def finish_restore(place: ProjectPaths) -> bool:
    """Finish or undo a restoration whose process was killed; return whether the backup is the state now.

    Costs one look at the disk where there is none. Raises ``StoreBusy`` while another process restores.
    """
    folder = place.state / FOLDER
    if not folder.is_dir() or folder.is_symlink():
        return False
    with _locked(folder):
        is_restored = _has_row(place.database, folder)
        if is_restored:
            _put_in_place(folder, place)
        shutil.rmtree(folder, ignore_errors=True)
    return is_restored


def _prepare(source: Path, folder: Path, place: ProjectPaths) -> Contents:
    """Unpack and verify the backup in ``folder``; its journal gets the row that says so."""
    state = folder / _STATE
    contents = unpack(source, state)
    names = tuple(part.path for part in contents.parts if part.path != DATABASE)
    for name in names:
        parents = (place.state / parent for parent in Path(name).parents if parent.parts)
        if (place.state / name).is_dir() or any(p.is_symlink() or p.is_file() for p in parents):
            raise BackupRefused(f"{source} has a file {name[:200]!r}, where the state has none.")
    database = state / DATABASE
    if not database.exists():
        raise BackupRefused(f"{source} has no database.")

    def record(tx: Tx) -> None:
        if contents.state != str(place.state):
            worktrees.move_all(tx, str(place.state / "worktrees"))
        seq, digest = last_row(tx.connection)
        fault = f"restored from a backup of {contents.at}, row {contents.seq}"
        tx.journal(JournalAnchored(seq=seq, digest=digest, fault=fault), actor="person")

    with Store.open(database) as store:  # an older one is brought to this version's schema
        store.write_now(record)
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
    seq, digest = check_database(database)
    ready = msgspec.json.encode(Ready(seq, digest, names))
    partial = folder / f".{_READY}"
    with partial.open("wb") as file:
        file.write(ready)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(folder / _READY)
    sync_folder(folder)
    return contents


def _write_database(source: Path, target: Path) -> None:
    """Make the content of ``target`` that of ``source`` in one transaction, while no other process has it.

    Raises :class:`StoreCorrupt` for one that is damaged.
    """
    with translate_errors(target), closing(connect(target, busy_timeout_ms=500)) as connection:
        connection.execute("PRAGMA locking_mode=EXCLUSIVE")
        try:
            connection.execute("BEGIN EXCLUSIVE")
            connection.execute("COMMIT")
        except sqlite3.OperationalError as error:
            raise BackupRefused(
                f"Another process uses {target}; nothing was changed. End every cockpit of this project"
                " (`cockpit chain` shows chains), then try again."
            ) from error
        (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":  # SQLite could write over it, and what is left of it would be gone
            raise StoreCorrupt(f"{target} is damaged: {verdict}")
        with closing(sqlite3.connect(f"{source.as_uri()}?mode=ro", uri=True)) as prepared:
            prepared.backup(connection)


def _replace_database(source: Path, target: Path) -> None:
    """Put ``source`` in the place of a damaged database, in one step; the damaged one keeps another name."""
    kept = target.with_name(f"{target.name}{DAMAGED}")
    partial = target.with_name(f".{target.name}.restored")
    shutil.copyfile(source, partial)
    partial.chmod(0o600)
    with partial.open("rb") as file:
        os.fsync(file.fileno())
    kept.unlink(missing_ok=True)
    os.link(target, kept)
    for ending in ("-wal", "-shm"):  # SQLite would write the damaged log into the restored file
        log = target.with_name(f"{target.name}{ending}")
        if log.exists():
            log.replace(kept.with_name(f"{kept.name}{ending}"))
    partial.replace(target)
    sync_folder(target.parent)


def _has_row(database: Path, folder: Path) -> bool:
    """Whether the database is the one that was prepared in ``folder``."""
    try:
        ready = decode_json((folder / _READY).read_bytes(), Ready)
    except (FileNotFoundError, msgspec.DecodeError):
        return False
    if not database.exists():
        return False
    try:
        with translate_errors(database), closing(connect(database, read_only=True)) as connection:
            row = connection.execute(
                "SELECT digest FROM journal WHERE seq=?", (ready.seq,)
            ).fetchone()
    except sqlite3.OperationalError:
        return False  # a new file, in which no table was written
    return row is not None and row[0] == ready.digest


def _put_in_place(folder: Path, place: ProjectPaths) -> None:
    """Move the prepared files to their places, and write the anchor. Doing it twice does no harm."""
    ready = decode_json((folder / _READY).read_bytes(), Ready)
    for name in ready.files:
        prepared, target = folder / _STATE / name, place.state / name
        if prepared.is_file():
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            prepared.replace(target)
            sync_folder(target.parent)
    if ROOT_TOKEN not in ready.files:
        (place.state / ROOT_TOKEN).unlink(missing_ok=True)  # the restored store does not know it
    anchor = find_anchor_file(place.database)
    if anchor is not None:
        at = format_time(SystemClock().now())
        write_anchor(anchor, HeadAnchor(ready.seq, ready.digest, at))


def _clear(folder: Path) -> None:
    (folder / _READY).unlink(missing_ok=True)  # first: without it nothing counts as prepared
    shutil.rmtree(folder / _STATE, ignore_errors=True)
    (folder / _STATE).mkdir(mode=0o700)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep other processes from restoring or finishing meanwhile. The lock ends with the process."""
    handle = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise StoreBusy(
                "Another process restores a backup of this project. Wait until it has ended."
            ) from error
        yield
    finally:
        os.close(handle)
