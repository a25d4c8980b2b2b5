"""Write a backup of a project's state, while other processes write to the store.

The database is copied by SQLite in one snapshot, and the copy is verified before the backup appears under
its name. Specified in ``docs/how-to/backup.md``.
"""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from cockpit import __version__
from cockpit.core.clock import format_time
from cockpit.core.errors import StoreCorrupt, StoreUnwritable
from cockpit.core.project_paths import ProjectPaths
from cockpit.core.state_folder import DATABASE
from cockpit.store.backup.backup_file import (
    LEFT_OUT,
    VERSION,
    BackupRefused,
    Contents,
    Part,
    digest_file,
    is_kept,
    pack,
    sync_folder,
)
from cockpit.store.db.connection import as_store_error, translate_errors
from cockpit.store.db.database import Store
from cockpit.store.journal import verify_chain
from cockpit.store.journal.head_anchor import last_row


def write_backup(store: Store, place: ProjectPaths, target: Path, *, replace: bool) -> Contents:
    """Write a backup of the state of ``place`` to ``target``, readable by its owner alone.

    ``target`` is the earlier file or the whole new one at every moment. Raises :class:`BackupRefused` where
    it exists and ``replace`` is False or it is no plain file, ``StoreCorrupt`` where the store does not
    verify, and ``StoreUnwritable`` where the disk is full or the folder cannot be written.
    """
    try:
        _refuse_target(target, replace=replace)
        return _write(store, place, target, replace=replace)
    except OSError as error:
        raise StoreUnwritable(
            f"The backup cannot be written to {target}: {error.strerror or error}. Nothing was replaced."
        ) from error


def _refuse_target(target: Path, *, replace: bool) -> None:
    try:
        mode = target.lstat().st_mode
    except FileNotFoundError:
        return
    if not replace:
        raise BackupRefused(f"{target} exists; nothing was written. Pass --replace to replace it.")
    if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
        raise BackupRefused(f"{target} is no plain file, so nothing replaces it. Name another one.")


def _write(store: Store, place: ProjectPaths, target: Path, *, replace: bool) -> Contents:
    _remove_leftovers(target)
    folder = target.with_name(f".{target.name}.{os.getpid()}.partial")
    folder.mkdir(mode=0o700)
    try:
        copied = folder / "state"
        copied.mkdir(mode=0o700)
        seq, digest = _copy_database(store.path, copied / DATABASE)
        parts = [_part(copied, Path(DATABASE))]
        for name in _list_files(place.state):
            (copied / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                shutil.copyfile(place.state / name, copied / name, follow_symlinks=False)
            except FileNotFoundError:
                continue  # removed since it was listed
            parts.append(_part(copied, name))
        contents = Contents(
            VERSION,
            __version__,
            format_time(store.clock.now()),
            str(place.identity),
            str(place.home),
            str(place.state),
            seq,
            digest,
            tuple(parts),
        )
        packed = folder / "packed"
        pack(packed, copied, contents)
        _publish(packed, target, replace=replace)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return contents


def check_database(path: Path) -> tuple[int, str]:
    """Verify the database at ``path``: its pages and its journal. Return the journal's last row.

    Raises ``StoreCorrupt``.
    """
    with translate_errors(path), closing(sqlite3.connect(path)) as connection:
        (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
        if verdict != "ok":
            raise StoreCorrupt(f"{path}: {verdict}.")
        chain = verify_chain.verify(connection)
        if chain.broken is not None:
            row, why = chain.broken
            raise StoreCorrupt(f"The journal does not verify at row {row}: {why}.")
        return last_row(connection)


def _copy_database(source: Path, target: Path) -> tuple[int, str]:
    """Copy the database in one snapshot, and verify the copy; return the journal's last row."""
    os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        with closing(sqlite3.connect(target)) as copy:
            with closing(sqlite3.connect(f"{source.as_uri()}?mode=ro", uri=True)) as connection:
                connection.backup(copy)
            copy.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.Error as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_FULL:  # only the copy is written to
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
        raise as_store_error(source, error) from error
    return check_database(target)


def _list_files(state: Path) -> Iterator[Path]:
    """Yield the plain files of a state folder that a backup has beside the database, relative to it."""
    for top, folders, files in os.walk(state):
        below = Path(top).relative_to(state)
        folders[:] = sorted(name for name in folders if below.parts or name not in LEFT_OUT)
        for name in sorted(files):
            path = below / name
            if is_kept(path) and stat.S_ISREG((state / path).lstat().st_mode):
                yield path


def _part(folder: Path, name: Path) -> Part:
    size, digest = digest_file(folder / name)
    return Part(name.as_posix(), size, digest)


def _publish(packed: Path, target: Path, *, replace: bool) -> None:
    if replace:
        packed.replace(target)
    else:
        try:
            os.link(packed, target)  # unlike a rename, this replaces nothing
        except FileExistsError as error:
            raise BackupRefused(f"{target} appeared meanwhile; nothing was replaced.") from error
    sync_folder(target.parent)


def _remove_leftovers(target: Path) -> None:
    """Remove what backups to the same file left behind that were killed."""
    for folder in target.parent.glob(f".{target.name}.*.partial"):
        pid = folder.name.split(".")[-2]
        if pid.isdecimal() and not Path("/proc", pid).exists() and Path("/proc/self").exists():
            shutil.rmtree(folder, ignore_errors=True)
