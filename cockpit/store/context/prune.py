"""Pruning: archive and delete facts, packets and jobs of sessions that ended long ago.

The archive is a compressed file of JSON lines, complete and on disk before the first row is
deleted. Rows are deleted in short transactions, so that other writers wait for milliseconds. A
session that can still be resumed loses nothing: a fact is deleted only when no session has it any
more. Specified in ``docs/reference/journal.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct

from cockpit.core.clock import format_time
from cockpit.core.errors import StoreError
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.db.write_archive import Line, read_archive, select_lines, write_archive
from cockpit.store.journal.details.store import StoreArchived
from cockpit.store.journal.prune_journal import SESSION_IS_OVER

TABLES = ("orientation_packets", "observation_jobs", "session_facts", "observed_facts")
"""The tables that are archived and deleted, in the order of deletion."""

BATCH = 200
"""Rows that are deleted in one transaction: some milliseconds."""
PACKET_BATCH = 20
"""Packets, which are much larger, that are deleted in one transaction."""


class PruneResult(Struct, frozen=True):
    """What was deleted: sessions by id, rows by table."""

    sessions: tuple[str, ...]
    packets: int
    jobs: int
    links: int
    facts: int
    archive: Path | None
    """None when there was nothing to do."""

    def body(self) -> dict[str, Any]:
        """Return it as commands print it."""
        return {
            "sessions": list(self.sessions),
            "packets": self.packets,
            "jobs": self.jobs,
            "links": self.links,
            "facts": self.facts,
            "archive": self.archive.name if self.archive else "",
        }


class _Rows(Struct, frozen=True):
    """The keys of the rows that are archived, by table: only those are deleted."""

    packets: list[tuple[Any, ...]]
    jobs: list[tuple[Any, ...]]
    links: list[tuple[Any, ...]]
    facts: list[tuple[Any, ...]]


def select_prunable(connection: sqlite3.Connection, before: str) -> list[str]:
    """Read the sessions that ended, did not change since ``before`` and still have rows to prune.

    ``before`` is a time as the store has it. A session whose last wave is open (it was stopped, or
    failed and may be tried again) has not ended.
    """
    rows = connection.execute(
        f"SELECT session_id FROM sessions WHERE {SESSION_IS_OVER}"  # noqa: S608 - fixed text
        " AND (EXISTS (SELECT 1 FROM session_facts f"
        " WHERE f.session_id=sessions.session_id) OR EXISTS (SELECT 1 FROM wave_runs w"
        " JOIN orientation_packets p USING (wave_id) WHERE w.session_id=sessions.session_id)"
        " OR EXISTS (SELECT 1 FROM wave_runs w JOIN observation_jobs j USING (wave_id)"
        " WHERE w.session_id=sessions.session_id))"
        " ORDER BY updated_at, session_id",
        {"before": before},
    )
    return [str(session_id) for (session_id,) in rows]


def prune(store: Store, before: str, *, dry_run: bool = False) -> PruneResult:
    """Archive and delete what sessions that ended before ``before`` leave behind.

    A crash at any point loses nothing: either the archive is incomplete and nothing was deleted, or
    running it again deletes the rest. Raises
    :class:`~cockpit.core.errors.StoreUnwritable` when the archive cannot be
    written; then nothing was deleted.
    """
    sessions = store.read_now(lambda connection: select_prunable(connection, before))
    if dry_run or not sessions:
        rows = store.read_now(lambda connection: _select_rows(connection, sessions))
        return _result(sessions, rows, None)
    began = store.clock.now()
    moment = began.strftime("%Y%m%dT%H%M%S%f")

    def archive_rows(connection: sqlite3.Connection) -> tuple[Path, _Rows]:
        rows = _select_rows(connection, sessions)
        folder = store.path.parent / "archive"
        return write_archive(folder, f"prune-{moment}", _lines(connection, sessions, rows)), rows

    archive, rows = store.read_now(archive_rows)
    pruned = store.write_now(lambda tx: _mark_pruned(tx, sessions, before, archive.name))
    if len(pruned) < len(sessions):
        # A session was resumed while the archive was written: its rows stay.
        rows = store.read_now(lambda connection: _select_rows(connection, pruned))
    for keys, size, step in (
        (rows.packets, PACKET_BATCH, _delete_packets),
        (rows.jobs, BATCH, _delete_jobs),
        (rows.links, BATCH, _delete_links),
    ):
        for start in range(0, len(keys), size):
            store.write_now(partial(step, keys=keys[start : start + size]))
    archived_at = format_time(began)
    facts = 0
    for start in range(0, len(rows.facts), BATCH):
        keys = rows.facts[start : start + BATCH]
        facts += store.write_now(partial(_delete_facts, keys=keys, archived_at=archived_at))
    done = _result(pruned, rows, archive, facts=facts)
    counts = {"packets": done.packets, "links": done.links, "facts": done.facts, "jobs": done.jobs}
    event = StoreArchived(what="facts", archive=archive.name, rows=counts, sessions=done.sessions)
    store.write_now(lambda tx: tx.journal(event, actor="person"))
    return done


def restore(store: Store, archive: Path) -> int:
    """Put an archive's rows back where they are missing; returns how many were missing."""
    lines = read_archive(archive)
    if any(table not in TABLES for table, _ in lines):
        raise StoreError(
            f"{archive} is an archive of the journal, which is not put back: the journal continues"
            " from its anchor. `gzip -dc` prints the archive's rows."
        )

    def step(tx: Tx) -> int:
        back = 0
        # Facts first, because links refer to them.
        for wanted in reversed(TABLES):
            for table, row in lines:
                if table == wanted:
                    back += _put_back(tx, table, row)
                    tx.execute(
                        "DELETE FROM pruned_sessions WHERE session_id=?", (row.get("session_id"),)
                    )
        event = StoreArchived(what="restored", archive=archive.name, rows={"all": back})
        tx.journal(event, actor="person")
        return back

    return store.write_now(step)


def was_pruned(connection: sqlite3.Connection, session_id: str) -> bool:
    """Tell whether the session was pruned, or has waves but no facts left.

    It cannot be resumed before its facts are restored.
    """
    (pruned, facts, waves) = connection.execute(
        "SELECT EXISTS (SELECT 1 FROM pruned_sessions WHERE session_id=:s),"
        " EXISTS (SELECT 1 FROM session_facts WHERE session_id=:s),"
        " EXISTS (SELECT 1 FROM wave_runs WHERE session_id=:s AND phase='completed')",
        {"s": session_id},
    ).fetchone()
    return bool(pruned or (waves and not facts))


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


def _result(
    sessions: Sequence[str], rows: _Rows, archive: Path | None, *, facts: int | None = None
) -> PruneResult:
    return PruneResult(
        tuple(sessions),
        len(rows.packets),
        len(rows.jobs),
        len(rows.links),
        len(rows.facts) if facts is None else facts,
        archive,
    )


def _select_rows(connection: sqlite3.Connection, sessions: Sequence[str]) -> _Rows:
    rows = _Rows([], [], [], _exclusive_facts(connection, sessions))
    of_session = "FROM wave_runs JOIN {} USING (wave_id) WHERE session_id=?"
    for keys, sql in (
        (rows.packets, "SELECT wave_id " + of_session.format("orientation_packets")),
        (rows.jobs, "SELECT wave_id, position " + of_session.format("observation_jobs")),
        (rows.links, "SELECT session_id, ordinal, position FROM session_facts WHERE session_id=?"),
    ):
        for session_id in sessions:
            keys.extend(connection.execute(sql, (session_id,)))
    return rows


def _exclusive_facts(
    connection: sqlite3.Connection, sessions: Sequence[str]
) -> list[tuple[Any, ...]]:
    """Read the facts that none but these sessions have."""
    if not sessions:
        return []
    pruned = set(sessions)
    needed_elsewhere = {
        fact_id
        for fact_id, session_id in connection.execute(
            "SELECT fact_id, session_id FROM session_facts"
        )
        if session_id not in pruned
    }
    rows = connection.execute("SELECT fact_id FROM observed_facts ORDER BY fact_id")
    return [row for row in rows if row[0] not in needed_elsewhere]


def _lines(connection: sqlite3.Connection, sessions: Sequence[str], rows: _Rows) -> Iterator[Line]:
    of_session = "wave_id IN (SELECT wave_id FROM wave_runs WHERE session_id=?)"
    for session_id in sessions:
        for table in ("orientation_packets", "observation_jobs"):
            yield from select_lines(connection, table, of_session, (session_id,))
        yield from select_lines(connection, "session_facts", "session_id=?", (session_id,))
    for fact_id in rows.facts:
        yield from select_lines(connection, "observed_facts", "fact_id=?", fact_id)


def _mark_pruned(tx: Tx, sessions: Sequence[str], before: str, archive: str) -> tuple[str, ...]:
    """Mark those sessions that are still prunable: from then on none of them resumes.

    One may have been resumed in the meantime.
    """
    still = set(select_prunable(tx.connection, before))
    pruned = tuple(session_id for session_id in sessions if session_id in still)
    tx.connection.executemany(
        "INSERT OR REPLACE INTO pruned_sessions(session_id, archive, pruned_at) VALUES (?,?,?)",
        [(session_id, archive, tx.now()) for session_id in pruned],
    )
    return pruned


def _delete_packets(tx: Tx, keys: Sequence[tuple[Any, ...]]) -> None:
    tx.execute("INSERT INTO pruning VALUES (1)")
    tx.connection.executemany("DELETE FROM orientation_packets WHERE wave_id=?", keys)
    tx.execute("DELETE FROM pruning")


def _delete_jobs(tx: Tx, keys: Sequence[tuple[Any, ...]]) -> None:
    tx.connection.executemany("DELETE FROM observation_jobs WHERE wave_id=? AND position=?", keys)


def _delete_links(tx: Tx, keys: Sequence[tuple[Any, ...]]) -> None:
    tx.connection.executemany(
        "DELETE FROM session_facts WHERE session_id=? AND ordinal=? AND position=?", keys
    )


def _delete_facts(tx: Tx, keys: Sequence[tuple[Any, ...]], archived_at: str) -> int:
    """Delete archived facts that no session has linked since they were archived."""
    # Only a session that ran since then can have a new link. An index by fact would find it without
    # this, and slow down every ingest.
    linked = {
        fact_id
        for (session_id,) in tx.execute(
            "SELECT session_id FROM sessions WHERE lease_owner IS NOT NULL OR updated_at>=?",
            (archived_at,),
        ).fetchall()
        for (fact_id,) in tx.execute(
            "SELECT fact_id FROM session_facts WHERE session_id=?", (session_id,)
        )
    }
    free = [key for key in keys if key[0] not in linked]
    tx.connection.executemany("DELETE FROM observed_facts WHERE fact_id=?", free)
    return len(free)
