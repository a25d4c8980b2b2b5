"""Comparing every table with the journal: which row was changed, removed or added from outside.

The journal's seals say what each row was when cockpit wrote it last; tables that are computed are computed
again. Specified in ``docs/reference/journal.md``, seals.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator
from typing import Literal

import msgspec
from msgspec import Struct

from cockpit.store.journal.seals import Seals, read_shapes, seal_row

_decode = msgspec.json.Decoder(dict[str, dict[str, str | None]]).decode

What = Literal["changed", "removed", "added"]


class TableFault(Struct, frozen=True):
    """A row of a table that is not as the journal says."""

    table: str
    key: str
    """The row's key; a JSON list where it has several columns."""
    what: What

    def __str__(self) -> str:
        return f"{self.table}: row {self.key} was {self.what}"


class TablesVerdict(Struct, frozen=True):
    """The result of comparing the tables."""

    rows: int
    """How many rows were compared."""
    faults: tuple[TableFault, ...]
    """Rows that differ, at most :data:`MOST_FAULTS`."""
    sealed_since: str
    """When the first seals were written: what was changed before that is not found. Empty without seals."""

    @property
    def ok(self) -> bool:
        return not self.faults


MOST_FAULTS = 1_000


class StoredTables(Struct, frozen=True):
    """The rows of all tables as they are stored, in one reading."""

    digests: dict[str, dict[str, str]]
    """Of each sealed table, the digest of each row by its key."""
    totals: tuple[TableFault, ...]
    """The sums that are not those of the sessions."""
    sealed_since: str


def verify_tables(connection: sqlite3.Connection) -> TablesVerdict:
    """Compare every row of every table; the journal itself must have been verified."""
    if not _has_seals(connection):
        return TablesVerdict(0, (), "")
    return compare_tables(read_tables(connection), fold_seals(connection))


def read_tables(connection: sqlite3.Connection) -> StoredTables:
    """Read every row of every sealed table."""
    return StoredTables(
        {
            table: {shape.key_of(row): seal_row(row) for row in connection.execute(shape.select())}
            for table, shape in read_shapes(connection).items()
        },
        tuple(_compare_totals(connection)),
        _sealed_since(connection),
    )


def compare_tables(stored: StoredTables, sealed: Seals) -> TablesVerdict:
    """Compare every row with its last seal."""
    faults: list[TableFault] = []
    rows = 0
    for table, digests in stored.digests.items():
        expected = sealed.get(table, {})
        rows += len(digests)
        if digests == expected:
            continue
        for key, digest in digests.items():
            if (last := expected.get(key)) != digest:
                faults.append(TableFault(table, key, "added" if last is None else "changed"))
        removed = [key for key, last in expected.items() if last is not None and key not in digests]
        faults += [TableFault(table, key, "removed") for key in removed]
        rows += len(removed)
    for table in sealed.keys() - stored.digests.keys():  # one that is gone
        faults += [TableFault(table, key, "removed") for key, last in sealed[table].items() if last]
    faults += stored.totals
    return TablesVerdict(rows, tuple(faults[:MOST_FAULTS]), stored.sealed_since)


def list_unsealed(
    connection: sqlite3.Connection, faults: Collection[TableFault]
) -> Iterator[tuple[str, str, str | None]]:
    """Yield (table, key, digest) of each row that a migration changed, and of each that has no seal yet.

    Rows that ``faults`` name differed before it: they keep the seals that tell so.
    """
    left_out = {(fault.table, fault.key) for fault in faults}
    expected = fold_seals(connection)
    for table, shape in read_shapes(connection).items():
        sealed = expected.pop(table, {})
        for row in connection.execute(shape.select()):
            key, digest = shape.key_of(row), seal_row(row)
            if sealed.pop(key, None) != digest and (table, key) not in left_out:
                yield table, key, digest
        expected[table] = sealed
    for table, sealed in expected.items():
        for key, last in sealed.items():
            if last is not None and (table, key) not in left_out:
                yield table, key, None


def fold_seals(
    connection: sqlite3.Connection, *, after: int = -(2**63), until: int = 2**63 - 1
) -> Seals:
    """Return the last seal of each row, by table, that rows of the journal have: after < seq ≤ until."""
    expected: Seals = {}
    for (text,) in connection.execute(
        "SELECT seals FROM journal WHERE seq>? AND seq<=? AND seals<>'' ORDER BY seq",
        (after, until),
    ):
        try:
            sealed = _decode(text)
        except msgspec.DecodeError:
            continue  # the chain says that the row was changed
        for table, keys in sealed.items():
            expected.setdefault(table, {}).update(keys)
    return expected


def _compare_totals(connection: sqlite3.Connection) -> list[TableFault]:
    """Compare the sums of the sessions with the sessions."""
    computed = {
        status: (sessions, priced)
        for status, sessions, priced in connection.execute(
            "SELECT CASE outcome WHEN '' THEN status ELSE outcome END, count(*), count(cost_usd)"
            " FROM sessions WHERE chain_id IS NULL GROUP BY 1"
        )
    }
    stored = {
        status: (sessions, priced)
        for status, sessions, priced in connection.execute(
            "SELECT status, sessions, priced FROM session_totals WHERE sessions<>0 OR priced<>0"
        )
    }
    differing = {
        status
        for status in computed.keys() | stored.keys()
        if computed.get(status) != stored.get(status)
    }
    return [TableFault("session_totals", str(status), "changed") for status in sorted(differing)]


def _has_seals(connection: sqlite3.Connection) -> bool:
    """Whether the store has a place for seals: an older one gets it from a migration."""
    columns = connection.execute("PRAGMA table_info(journal)").fetchall()
    return any(name == "seals" for _, name, *_ in columns)


def _sealed_since(connection: sqlite3.Connection) -> str:
    row = connection.execute(
        "SELECT at FROM journal WHERE seals<>'' ORDER BY seq LIMIT 1"
    ).fetchone()
    return "" if row is None else str(row[0])
