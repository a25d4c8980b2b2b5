"""Space of deleted rows, given back to the disk step by step, beside other writers.

Specified in ``docs/reference/journal.md``.
"""

from __future__ import annotations

import sqlite3

from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx

STEP_PAGES = 64
"""Pages (of 4 KiB) that are given back in one transaction."""


def free_pages(store: Store) -> int:
    """Give free pages back in short transactions; returns how many bytes that was."""
    before = _file_pages(store)

    def step(tx: Tx) -> int:
        (left,) = tx.execute("PRAGMA freelist_count").fetchone()
        for _ in range(min(left, STEP_PAGES)):
            # Page by page: Python runs only the first step of this statement.
            tx.execute("PRAGMA incremental_vacuum(1)")
        return int(left)

    while store.write_now(step) > STEP_PAGES:
        continue
    pages, size = before - _file_pages(store), store.read_now(_page_size)
    return pages * size


def _page_size(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA page_size").fetchone()[0])


def _file_pages(store: Store) -> int:
    return int(store.read_now(lambda c: c.execute("PRAGMA page_count").fetchone()[0]))
