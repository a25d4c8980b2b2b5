"""Compare the schema of a store with the one that its migrations give.

Triggers and views run inside cockpit's own statements, so one that cockpit did not create is refused before
any statement that could start it. Specified in ``docs/reference/journal.md``.
"""

from __future__ import annotations

import sqlite3

from cockpit.core.errors import StoreError

_KEPT_BY_SQLITE = ("sqlite_sequence", "sqlite_stat1", "sqlite_stat4")
_MOST_NAMED = 3

Rows = frozenset[tuple[str, str, str, str]]
"""Type, name, table and statement of each object of a schema."""


class StoreForeign(StoreError):
    """The store has triggers, views, tables or indexes that are not cockpit's."""

    code = "store_foreign"


def check_schema(connection: sqlite3.Connection, expected: Rows) -> None:
    """Refuse a store with another schema than ``expected``.

    Raises :class:`StoreForeign` with the names of the objects that differ.
    """
    rows = read_schema(connection)
    different = sorted(f"{kind} {name}" for kind, name, _, _ in _plain(rows) ^ _plain(expected))
    if not different:
        return
    different = list(dict.fromkeys(different))
    more = len(different) - _MOST_NAMED
    listed = ", ".join(repr(name)[1:-1][:80] for name in different[:_MOST_NAMED])
    raise StoreForeign(
        f"The store's schema is not cockpit's: {listed}{f' and {more} more' if more > 0 else ''}"
        " differ from what its migrations create. A foreign trigger or view would run inside cockpit;"
        " nothing was read. Move the store away, or restore a copy from the backups folder next to it."
    )


def read_schema(connection: sqlite3.Connection) -> Rows:
    """Read all objects of the schema except those that SQLite makes by itself."""
    rows = connection.execute(
        "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema"
        " WHERE sql IS NOT NULL OR type<>'index'"
    )
    return frozenset(
        (str(kind), str(name), str(table), str(sql))
        for kind, name, table, sql in rows
        if not (kind == "table" and name in _KEPT_BY_SQLITE)
    )


def _plain(rows: Rows) -> Rows:
    """Return the rows without what versions of SQLite write differently: spaces, quotes and case."""
    return frozenset(
        (kind, name, table, "".join(sql.replace('"', "").casefold().split()))
        for kind, name, table, sql in rows
    )
