"""Space of deleted rows, given back to the disk.

Stores created by this version of cockpit give it back step by step, beside other writers. An older file
is rebuilt once, while no other process has it open. Specified in ``docs/reference/journal.md``.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from cockpit.store.db.connection import translate_errors
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx

STEP_PAGES = 64
"""Pages (of 4 KiB) that are given back in one transaction."""


def free_pages(store: Store) -> int:
    """Give free pages back in short transactions; returns how many bytes that was.

    0 for a file that must be rebuilt first, see :func:`rebuild_file`.
    """
    before = _file_pages(store)

    def step(tx: Tx) -> int:
        (left,) = tx.execute("PRAGMA freelist_count").fetchone()
        for _ in range(min(left, STEP_PAGES)):
            # Page by page: Python runs only the first step of this statement.
            tx.execute("PRAGMA incremental_vacuum(1)")
        return int(left)

    if store.read_now(_mode) == _INCREMENTAL:
        while store.write_now(step) > STEP_PAGES:
            continue
    pages, size = before - _file_pages(store), store.read_now(_page_size)
    return pages * size


def rebuild_file(path: Path) -> int | None:
    """Rebuild an older file without its free pages; returns the bytes that it gives back.

    0 where nothing is free or the file needs no rebuild. None where another process has the file open:
    nothing was changed then, and later rows use the free pages.
    """
    with translate_errors(path):
        connection = sqlite3.connect(path, isolation_level=None, timeout=0)
        try:
            # With this lock SQLite opens the file only if no other connection has it open.
            connection.execute("PRAGMA locking_mode=EXCLUSIVE")
            try:
                connection.execute("BEGIN IMMEDIATE")
                connection.execute("ROLLBACK")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                    return None
                raise
            (free,) = connection.execute("PRAGMA freelist_count").fetchone()
            if not free or _mode(connection) == _INCREMENTAL:
                return 0
            before = path.stat().st_size
            connection.execute("PRAGMA auto_vacuum=INCREMENTAL")
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            connection.close()
    return before - path.stat().st_size


_INCREMENTAL = 2


def _mode(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA auto_vacuum").fetchone()[0])


def _page_size(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA page_size").fetchone()[0])


def _file_pages(store: Store) -> int:
    return int(store.read_now(lambda c: c.execute("PRAGMA page_count").fetchone()[0]))
