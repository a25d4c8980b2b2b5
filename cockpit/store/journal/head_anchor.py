"""The journal's end, kept in a file outside the store: it tells a cut, rewritten or swapped store.

Inside one file everything can be rewritten consistently, digests included. So the last row's number and
digest are written to a file beside the states of the projects, and compared when the store is opened. The
file is written at most every :data:`COMMITS` commits or :data:`SECONDS` seconds and when the store closes.
Specified in ``docs/reference/journal.md``, the anchor outside the store.
"""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path

from msgspec import Struct

COMMITS = 1_000
"""Commits after which the anchor is written again."""
SECONDS = 30.0
"""Seconds after which it is, when rows were written."""
_LONGEST = 4_096

ADVICE = (
    "`cockpit debug journal` shows more. If you deleted the folder or restored a backup yourself,"
    " accept the store with `cockpit debug journal --accept`."
)


class HeadAnchor(Struct, frozen=True):
    """The content of the file."""

    seq: int
    """A row of the chain."""
    digest: str
    at: str
    """When it was written."""


def find_anchor_file(database: Path) -> Path | None:
    """Return the file for a store in ``STATE/projects/KEY/``: ``STATE/anchors/KEY``; None for others."""
    projects = database.parent.parent
    if projects.name != "projects":
        return None
    return projects.parent / "anchors" / database.parent.name


def read_anchor(file: Path) -> HeadAnchor | None:
    """Read the anchor; None where there is no file. Raises ``ValueError`` for one that is not readable."""
    try:
        with file.open(encoding="utf-8") as stream:
            body = json.loads(stream.read(_LONGEST))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ValueError(error.strerror or str(error)) from error
    if not isinstance(body, dict) or not isinstance(body.get("seq"), int):
        raise ValueError("it has no row")
    return HeadAnchor(body["seq"], str(body.get("digest")), str(body.get("at")))


def write_anchor(file: Path, anchor: HeadAnchor) -> None:
    """Replace the file in one step, and see that it is on the disk. Raises ``OSError``."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    partial = file.with_name(f".{file.name}.{os.getpid()}")
    handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        json.dump({"seq": anchor.seq, "digest": anchor.digest, "at": anchor.at}, stream)
        stream.flush()
        os.fsync(stream.fileno())
    partial.replace(file)


def compare(connection: sqlite3.Connection, anchor: HeadAnchor) -> str:
    """Return how the store differs from the anchor, in one sentence; empty where it has the anchor's row."""
    if not anchor.seq:
        return ""
    row = connection.execute("SELECT digest FROM journal WHERE seq=?", (anchor.seq,)).fetchone()
    if row is not None and row[0] == anchor.digest:
        return ""
    seq, _ = last_row(connection)
    if seq < anchor.seq:
        return (
            f"The journal ends at row {seq}, and had row {anchor.seq} at {anchor.at}: its end was cut off,"
            f" its folder was deleted, or the store was replaced by an older one. {ADVICE}"
        )
    return (
        f"Row {anchor.seq} of the journal is not the one that was written until {anchor.at}: the store was"
        f" rewritten, or replaced by another one. {ADVICE}"
    )


def last_row(connection: sqlite3.Connection) -> tuple[int, str]:
    """Return the last row of the chain and its digest; (0, '') in an empty journal."""
    row = connection.execute(
        "SELECT seq, digest FROM journal WHERE digest IS NOT NULL ORDER BY seq DESC LIMIT 1"
    ).fetchone()
    return (0, "") if row is None else (int(row[0]), str(row[1]))
