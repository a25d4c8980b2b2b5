"""Rows that this process has read or written and that nothing has changed since.

A wave's steps need the same few rows again and again: the end of the journal, the wave, its trace. They
are read once. At the start of each transaction SQLite's ``data_version`` says whether another connection
has committed in the meantime; then every row is read again. A rollback forgets them too. Specified in
``docs/reference/journal.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Hashable
from typing import Any

MOST_ROWS = 1_000
"""Rows that are kept; beyond, all are forgotten at the next transaction."""


class RowCache:
    """The rows that one connection may use without reading them, inside its transactions only.

    Whoever changes a row's table puts the new row here, or drops the old one.
    """

    __slots__ = ("_connection", "_rows", "_version")

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._rows: dict[Hashable, Any] = {}
        self._version: int | None = None

    def begin(self) -> bool:
        """Begin a transaction; returns whether the rows are still those of the file."""
        (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        is_current = bool(version == self._version)
        if not is_current or len(self._rows) > MOST_ROWS:
            self._rows.clear()
        self._version = version
        return is_current

    def get(self, key: Hashable) -> Any:
        """Return what was put under ``key``, or None."""
        return self._rows.get(key)

    def put(self, key: Hashable, row: Any) -> None:
        """Keep ``row`` under ``key``, as it is in the file now."""
        self._rows[key] = row

    def drop(self, key: Hashable) -> None:
        """Forget the row under ``key``."""
        self._rows.pop(key, None)

    def forget(self) -> None:
        """Forget everything: the transaction was rolled back."""
        self._rows.clear()
        self._version = None
