"""Pruning: archive and delete facts and packets of sessions that ended long ago.

The archive is a compressed file of JSON lines, complete and on disk before the first row is
deleted. The journal stays as it is and can be verified; it keeps each pruned packet's id and
digest. A session that can still be resumed loses nothing: a fact is deleted only when no session
has it any more. Specified in ``docs/reference/journal.md``.
"""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from cockpit.core.canonical_json import canonical_json
from cockpit.core.errors import StoreError, StoreUnwritable
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.store import StorePruned, StoreRestored

ENDED = ("completed", "failed", "stopped")
TABLES = ("orientation_packets", "session_facts", "observed_facts")
"""The tables that are archived and deleted, in the order of deletion."""

BATCH = 10_000
"""Facts that are deleted in one transaction."""


@dataclass(frozen=True, slots=True)
class PruneResult:
    """What was deleted: sessions by id, rows by table."""

    sessions: tuple[str, ...]
    packets: int
    links: int
    facts: int
    archive: Path | None
    """None when there was nothing to do."""

    def body(self) -> dict[str, Any]:
        """Return it as the journal and commands print it."""
        return {
            "sessions": list(self.sessions),
            "packets": self.packets,
            "links": self.links,
            "facts": self.facts,
            "archive": self.archive.name if self.archive else "",
        }


def select_prunable(connection: sqlite3.Connection, before: str) -> list[str]:
    """Read the sessions that ended, did not change since ``before`` and still have facts.

    ``before`` is a time as the store has it. A session whose last wave is open (it was stopped, or
    failed and may be tried again) has not ended.
    """
    rows = connection.execute(
        "SELECT session_id FROM sessions WHERE status IN (?,?,?) AND updated_at<?"
        " AND lease_owner IS NULL AND NOT EXISTS (SELECT 1 FROM wave_runs o"
        " WHERE o.session_id=sessions.session_id AND o.phase NOT IN ('completed','failed_terminal'))"
        " AND (EXISTS (SELECT 1 FROM session_facts f"
        " WHERE f.session_id=sessions.session_id) OR EXISTS (SELECT 1 FROM wave_runs w"
        " JOIN orientation_packets p USING (wave_id) WHERE w.session_id=sessions.session_id))"
        " ORDER BY updated_at, session_id",
        (*ENDED, before),
    )
    return [str(session_id) for (session_id,) in rows]


def prune(store: Store, before: str, *, dry_run: bool = False) -> PruneResult:
    """Archive and delete what sessions that ended before ``before`` leave behind.

    A crash at any point loses nothing: either the archive is incomplete and nothing was deleted, or
    running it again deletes the rest. Raises :class:`StoreUnwritable` when the archive cannot be
    written; then nothing was deleted.
    """
    sessions = store.read_now(lambda connection: select_prunable(connection, before))
    counts = store.read_now(lambda connection: _counts(connection, sessions))
    if dry_run or not sessions:
        return PruneResult(tuple(sessions), *counts, archive=None)
    archive, archived_facts = store.read_now(
        lambda connection: _write_archive(connection, store, sessions)
    )
    pruned = store.write_now(lambda tx: _delete_sessions(tx, sessions, before))
    facts = 0
    for start in range(0, len(archived_facts), BATCH):
        facts += store.write_now(
            partial(_delete_facts, archived=archived_facts[start : start + BATCH])
        )
    done = PruneResult(pruned, counts[0], counts[1], facts, archive)
    event = StorePruned(
        sessions=done.sessions,
        packets=done.packets,
        links=done.links,
        facts=done.facts,
        archive=done.archive.name if done.archive else "",
    )
    store.write_now(lambda tx: tx.journal(event, actor="person"))
    return done


def restore(store: Store, archive: Path) -> int:
    """Put an archive's rows back where they are missing; returns how many were missing."""
    try:
        with gzip.open(archive, "rt", encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
    except (OSError, ValueError, EOFError) as error:
        raise StoreError(f"{archive} is not a complete archive of cockpit: {error}.") from error

    def step(tx: Tx) -> int:
        back = 0
        # Facts first, because links refer to them.
        for table in reversed(TABLES):
            for row in (row for row in rows if row["table"] == table):
                back += _put_back(tx, table, row["row"])
        tx.journal(StoreRestored(archive=archive.name, rows=back), actor="person")
        return back

    return store.write_now(step)


def was_pruned(connection: sqlite3.Connection, session_id: str) -> bool:
    """Tell whether the session has waves but no facts left.

    It cannot be resumed before its facts are restored.
    """
    (facts, waves) = connection.execute(
        "SELECT EXISTS (SELECT 1 FROM session_facts WHERE session_id=:s),"
        " EXISTS (SELECT 1 FROM wave_runs WHERE session_id=:s AND phase='completed')",
        {"s": session_id},
    ).fetchone()
    return bool(waves and not facts)


def _put_back(tx: Tx, table: str, row: dict[str, Any]) -> int:
    table_columns = [str(column[1]) for column in tx.execute(f"PRAGMA table_info({table})")]
    if set(row) - set(table_columns):
        raise StoreError(
            f"The archive's {table} has columns that this version of cockpit does not know."
        )
    columns, marks = ", ".join(row), ",".join("?" * len(row))
    done = tx.execute(
        f"INSERT INTO {table}({columns}) VALUES ({marks}) ON CONFLICT DO NOTHING",  # noqa: S608 - our tables, columns checked above
        tuple(row.values()),
    )
    return done.rowcount


def _counts(connection: sqlite3.Connection, sessions: Sequence[str]) -> tuple[int, int, int]:
    packets = links = 0
    for session_id in sessions:
        (count,) = connection.execute(
            "SELECT count(*) FROM orientation_packets JOIN wave_runs USING (wave_id)"
            " WHERE session_id=?",
            (session_id,),
        ).fetchone()
        packets += int(count)
        (count,) = connection.execute(
            "SELECT count(*) FROM session_facts WHERE session_id=?", (session_id,)
        ).fetchone()
        links += int(count)
    return packets, links, len(_exclusive_facts(connection, sessions))


def _exclusive_facts(connection: sqlite3.Connection, sessions: Sequence[str]) -> list[str]:
    """Read the facts that none but these sessions have."""
    pruned = set(sessions)
    needed_elsewhere = {
        fact_id
        for fact_id, session_id in connection.execute(
            "SELECT fact_id, session_id FROM session_facts"
        )
        if session_id not in pruned
    }
    rows = connection.execute("SELECT fact_id FROM observed_facts ORDER BY fact_id")
    return [fact_id for (fact_id,) in rows if fact_id not in needed_elsewhere]


def _write_archive(
    connection: sqlite3.Connection, store: Store, sessions: Sequence[str]
) -> tuple[Path, list[str]]:
    """Write the complete archive: a private file, synced together with its folder.

    Returns it with the facts that it contains: only those may be deleted.
    """
    fact_ids = _exclusive_facts(connection, sessions)
    folder = store.path.parent / "archive"
    moment = store.clock.now().strftime("%Y%m%dT%H%M%S%f")
    target = folder / f"prune-{moment}.jsonl.gz"
    part = target.with_suffix(".part")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as raw:
            with gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as file:
                for table, row in _rows(connection, sessions, fact_ids):
                    file.write(f"{canonical_json({'table': table, 'row': row})}\n".encode())
            raw.flush()
            os.fsync(raw.fileno())
        part.rename(target)
        entry = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(entry)
        finally:
            os.close(entry)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise StoreUnwritable(
            f"The archive {target} cannot be written: {error.strerror or error}. Nothing was deleted."
        ) from error
    return target, fact_ids


def _rows(
    connection: sqlite3.Connection, sessions: Sequence[str], fact_ids: Sequence[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    for session_id in sessions:
        yield from _table(
            connection,
            "orientation_packets",
            "wave_id IN (SELECT wave_id FROM wave_runs WHERE session_id=?)",
            session_id,
        )
        yield from _table(connection, "session_facts", "session_id=?", session_id)
    for fact_id in fact_ids:
        yield from _table(connection, "observed_facts", "fact_id=?", fact_id)


def _table(
    connection: sqlite3.Connection, table: str, where: str, value: str
) -> Iterator[tuple[str, dict[str, Any]]]:
    rows = connection.execute(f"SELECT * FROM {table} WHERE {where}", (value,))  # noqa: S608 - ours
    names = [column[0] for column in rows.description]
    for row in rows:
        yield table, dict(zip(names, row, strict=True))


def _delete_sessions(tx: Tx, sessions: Sequence[str], before: str) -> tuple[str, ...]:
    """Delete packets and links of those sessions that are still prunable.

    One may have been resumed in the meantime.
    """
    still = set(select_prunable(tx.connection, before))
    pruned = tuple(session_id for session_id in sessions if session_id in still)
    tx.execute("INSERT INTO pruning VALUES (1)")
    for session_id in pruned:
        tx.execute(
            "DELETE FROM orientation_packets WHERE wave_id IN"
            " (SELECT wave_id FROM wave_runs WHERE session_id=?)",
            (session_id,),
        )
        tx.execute("DELETE FROM session_facts WHERE session_id=?", (session_id,))
    tx.execute("DELETE FROM pruning")
    return pruned


def _delete_facts(tx: Tx, archived: Sequence[str]) -> int:
    """Delete archived facts that no session has now."""
    # One scan of the links for the whole batch: an index by fact would slow down every ingest.
    linked = {fact_id for (fact_id,) in tx.execute("SELECT DISTINCT fact_id FROM session_facts")}
    free = [fact_id for fact_id in archived if fact_id not in linked]
    tx.connection.executemany("DELETE FROM observed_facts WHERE fact_id=?", [(f,) for f in free])
    return len(free)
