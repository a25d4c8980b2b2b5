"""One page of a table's ids, newest first, and the place at which the next page begins.

Pages are cut by creation time and id, so rows that are added meanwhile move nothing from one page to the
next. See ``docs/reference/http.md``, versions, pages and repeats.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Literal

Paged = Literal["proposals", "sessions", "events", "chains", "tasks", "capability_tokens"]

Place = tuple[str, str]
"""Creation time and id of the last row of a page."""

_KEYS: Mapping[Paged, str] = {
    "proposals": "proposal_id",
    "sessions": "session_id",
    "events": "event_id",
    "chains": "chain_id",
    "tasks": "task_id",
    "capability_tokens": "cap_id",
}


def select_page(
    connection: sqlite3.Connection,
    table: Paged,
    *,
    after: Place | None,
    limit: int,
    terms: Mapping[str, str] | None = None,
) -> tuple[list[str], Place | None]:
    """Return the ids of at most ``limit`` rows, and where the next page begins; None on the last page.

    ``terms`` maps SQL conditions with one ``?`` each, which the caller has written, to their values.
    """
    key = _KEYS[table]
    conditions = list(terms or ())
    values: list[object] = list((terms or {}).values())
    if after is not None:
        conditions.append(f"(created_at, {key}) < (?, ?)")
        values += after
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    rows = connection.execute(
        f"SELECT created_at, {key} FROM {table}{where}"  # noqa: S608 - names of the schema
        f" ORDER BY created_at DESC, {key} DESC LIMIT ?",
        (*values, limit + 1),
    ).fetchall()
    page = rows[:limit]
    return [row[1] for row in page], (page[-1][0], page[-1][1]) if len(rows) > limit else None
