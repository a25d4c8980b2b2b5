"""Exporting the journal's rows, and verifying an export without its store.

Specified in ``docs/reference/journal.md``, exports.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from cockpit.core.canonical_json import canonical_json
from cockpit.store.journal import chain_digest, journal
from cockpit.store.journal.details.detail import decode_detail
from cockpit.store.journal.details.store import JournalPruned
from cockpit.store.journal.event_types import Action

_PLAIN = journal.COLUMNS[:-2]


class ExportVerdict(Struct, frozen=True):
    """The result of verifying an export."""

    rows: int
    """How many rows of the chain were read."""
    broken: tuple[int, str] | None
    """The line that is wrong, from 1, and why; None for a sound export."""
    last: int = 0
    """The last row of the chain."""
    digest: str = ""
    """Its digest, by which the export is compared with a store."""
    unchained: int = 0
    """Rows that a pruning left: their neighbours are in its archive, so they follow from none."""

    @property
    def ok(self) -> bool:
        return self.broken is None


def select_exported(
    connection: sqlite3.Connection,
    *,
    after: int,
    session_id: str | None,
    limit: int,
    provisional: bool = True,
) -> list[tuple[int, str]]:
    """Return the next rows as (seq, line): canonical JSON.

    ``provisional``: with fragments of text that streams, which are in no chain and are replaced later.
    """
    where, values = ("", ()) if session_id is None else ("session_id=? AND ", (session_id,))
    where += "" if provisional else "digest IS NOT NULL AND "
    rows = connection.execute(
        f"{journal.SELECT} WHERE {where}seq>? ORDER BY seq LIMIT ?", (*values, after, limit)
    )
    return [(row[0], journal.read_row(row).line()) for row in rows]


def verify_export(lines: Iterable[str]) -> ExportVerdict:
    """Check that each row of an export follows from the one before.

    This finds a row that was changed, removed or inserted. Only the store, or the digest of the last row
    kept elsewhere, tells that rows are missing at the end. An export of one session has gaps, and does not
    verify.
    """
    rows = [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    try:
        bodies = [(number, _read(line)) for number, line in rows]
    except ValueError as error:
        return ExportVerdict(0, (_first_unreadable(rows), f"is not a row of a journal: {error}"))
    first, digest = _start(bodies)
    checked = unchained = last = 0
    for number, body in bodies:
        seq = body["seq"]
        if seq <= first:
            unchained += 1
            continue
        if not body["digest"]:
            continue  # provisional: a fragment of streamed text
        values = (*(body[name] for name in _PLAIN), canonical_json(body["detail"]))
        if chain_digest.chain_digest(digest, values) != body["digest"]:
            why = f"row {seq} was changed, or does not follow from row {last or first}"
            return ExportVerdict(checked, (number, why), last, digest, unchained)
        digest, last = body["digest"], seq
        checked += 1
    return ExportVerdict(checked, None, last, digest, unchained)


def verify_continuation(before: str | None, lines: Iterable[str]) -> str:
    """Check that rows of an export follow from the line ``before``, or begin a journal without one.

    Returns the digest of the last row. Raises ``ValueError`` that says which row is wrong.
    """
    digest = _read(before)["digest"] if before is not None else ""
    for line in lines:
        body = _read(line)
        if not body["digest"]:
            continue  # provisional
        values = (*(body[name] for name in _PLAIN), canonical_json(body["detail"]))
        if chain_digest.chain_digest(digest, values) != body["digest"]:
            raise ValueError(f"row {body['seq']} does not follow from the one before")
        digest = body["digest"]
    return str(digest)


def compare_with_store(connection: sqlite3.Connection, verdict: ExportVerdict) -> str:
    """Return how a sound export differs from the journal of a store; empty where it is a part of it."""
    if not verdict.last:
        return ""
    row = connection.execute("SELECT digest FROM journal WHERE seq=?", (verdict.last,)).fetchone()
    if row is None:
        return f"this project's journal has no row {verdict.last}"
    return "" if row[0] == verdict.digest else f"row {verdict.last} of this project is another one"


def _read(line: str) -> dict[str, Any]:
    body = json.loads(line)
    if not isinstance(body, dict) or not isinstance(body.get("seq"), int):
        raise ValueError("it has no seq")
    if missing := [name for name in (*_PLAIN, "detail", "digest") if name not in body]:
        raise ValueError(f"it has no {missing[0]}")
    return body


def _first_unreadable(rows: Iterable[tuple[int, str]]) -> int:
    for number, line in rows:
        try:
            _read(line)
        except ValueError:
            return number
    return 0


def _start(bodies: Iterable[tuple[int, dict[str, Any]]]) -> tuple[int, str]:
    """Return the last row before the chain and its digest: where the newest pruning says it begins."""
    start = (0, "")
    for _, body in bodies:
        if body["action"] == Action.JOURNAL_PRUNED:
            pruned = decode_detail(JournalPruned, canonical_json(body["detail"]))
            start = (pruned.seq, pruned.digest)
    return start
