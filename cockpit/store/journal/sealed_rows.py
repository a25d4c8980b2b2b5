"""Whether one row of a table is still as the journal sealed it, without a verification of the whole.

For rows that give rights by being there: a token that another program wrote into the store, or changed, opens
nothing. Specified in ``docs/reference/journal.md``, rows that take effect.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence

from cockpit.store.journal.event_types import Action
from cockpit.store.journal.seals import read_shape, seal_row
from cockpit.store.journal.verify_chain import is_linked


def is_as_sealed(
    connection: sqlite3.Connection, table: str, key: str, events: Sequence[Action], name: str
) -> bool:
    """Tell whether the row ``key`` of ``table`` is the one that the journal sealed last.

    ``events`` are those that write it; ``name`` is the member of their detail that holds the key. This takes
    as long as there are such events, and longer only for a row that was sealed again or is not as it was.
    """
    shape = read_shape(connection, table)
    row = connection.execute(f"{shape.select()} WHERE {shape.key[0]}=?", (key,)).fetchone()
    if row is None:
        return False
    stored = seal_row(row)
    sealed = _find_seal_of_event(connection, table, key, events, name)
    if sealed is None or sealed[1] != stored:
        # Pruned since, or sealed again by a migration.
        sealed = _find_later_seal(connection, table, key, 0 if sealed is None else sealed[0])
    return sealed is not None and sealed[1] == stored and is_linked(connection, sealed[0])


def _find_seal_of_event(
    connection: sqlite3.Connection, table: str, key: str, events: Sequence[Action], name: str
) -> tuple[int, str | None] | None:
    """Return the seal of the step that the last of ``events`` about the row belongs to, and its place."""
    marks = ",".join("?" * len(events))
    (seq,) = connection.execute(
        f"SELECT max(seq) FROM journal WHERE action IN ({marks})"  # noqa: S608 - marks, and a name of ours
        f" AND json_extract(detail_json, '$.{name}')=?",
        (*map(str, events), key),
    ).fetchone()
    if seq is None:
        return None
    # A step is sealed by the last of its rows: the next one with seals.
    sealed_row = connection.execute(
        "SELECT seq, seals FROM journal WHERE seq>=? AND seals<>'' ORDER BY seq LIMIT 1", (seq,)
    ).fetchone()
    return None if sealed_row is None else _read_seal(sealed_row, table, key)


def _find_later_seal(
    connection: sqlite3.Connection, table: str, key: str, after: int
) -> tuple[int, str | None] | None:
    rows = connection.execute(
        "SELECT seq, seals FROM journal WHERE action=? AND seq>? AND instr(seals, ?) ORDER BY seq DESC",
        (str(Action.STORE_SEALED), after, key),
    )
    return next(filter(None, (_read_seal(row, table, key) for row in rows)), None)


def _read_seal(row: tuple[int, str], table: str, key: str) -> tuple[int, str | None] | None:
    seals = json.loads(row[1]).get(table, {})
    return (row[0], seals[key]) if key in seals else None
