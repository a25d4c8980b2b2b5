"""Pruning the journals of workers of other machines: archived, then deleted, with the journal.

A journal is whole or gone: it stays while its run is open, and while a row of it arrived after the given
time. Specified in ``docs/reference/remote-workers.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import msgspec

from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.db.write_archive import Line, select_lines, write_archive
from cockpit.store.journal.details.store import StoreArchived
from cockpit.store.journal.event_types import Action

_Key = tuple[str, int, int]
"""A task, a run of it, and the number under which a worker had it."""
_OF_KEY = "task_id=? AND run=? AND fence=?"


class RemoteRowsPruning(msgspec.Struct, frozen=True):
    """What was deleted, or would be."""

    runs: int = 0
    """Journals, one for each time that a run was taken up."""
    rows: int = 0
    archive: Path | None = None
    """None where nothing was deleted."""


def select_prunable(connection: sqlite3.Connection, before: str) -> list[tuple[_Key, int]]:
    """Return the journals whose run is over and whose rows came before ``before``, with their rows."""
    rows = connection.execute(
        "SELECT w.task_id, w.run, w.fence, count(*) FROM remote_rows w"
        " LEFT JOIN remote_runs r ON r.task_id=w.task_id AND r.run=w.run"
        " WHERE r.task_id IS NULL OR r.state IN ('taken','withdrawn') OR w.fence < r.fence"
        " GROUP BY w.task_id, w.run, w.fence"
    ).fetchall()
    # By the coordinator's clock: that of a worker is another machine's.
    arrived = {
        tuple(key)
        for key in connection.execute(
            "SELECT json_extract(detail_json, '$.task_id'), json_extract(detail_json, '$.run'),"
            " json_extract(detail_json, '$.fence') FROM journal WHERE action=? AND at>=?",
            (Action.REMOTE_ROWS_RECEIVED, before),
        )
    }
    return [
        ((str(task_id), int(run), int(fence)), int(count))
        for task_id, run, fence, count in rows
        if (task_id, run, fence) not in arrived
    ]


def prune_remote_rows(store: Store, before: str, *, dry_run: bool = False) -> RemoteRowsPruning:
    """Archive and delete journals of workers whose last row came before ``before``.

    Raises :class:`~cockpit.core.errors.StoreUnwritable` where the archive cannot be written; then nothing was
    deleted. After a crash the next run deletes the rest.
    """
    due = store.read_now(lambda connection: select_prunable(connection, before))
    keys = [key for key, _ in due]
    rows = sum(count for _, count in due)
    if dry_run or not keys:
        return RemoteRowsPruning(len(keys), rows)
    moment = store.clock.now().strftime("%Y%m%dT%H%M%S%f")
    archive = store.read_now(
        lambda connection: write_archive(
            store.path.parent / "archive", f"remote-rows-{moment}", _lines(connection, keys)
        )
    )
    for key in keys:
        store.write_now(partial(_delete, key=key))
    counts = {"journals": len(keys), "rows": rows}
    event = StoreArchived(what="worker_rows", archive=archive.name, rows=counts)
    store.write_now(lambda tx: tx.journal(event, actor="person"))
    return RemoteRowsPruning(len(keys), rows, archive)


def _lines(connection: sqlite3.Connection, keys: Sequence[_Key]) -> Iterator[Line]:
    for key in keys:
        yield from select_lines(connection, "remote_rows", f"{_OF_KEY} ORDER BY seq", key)


def _delete(tx: Tx, key: _Key) -> None:
    """Delete one worker's journal, some hundred rows. None of them can be new: its run is over."""
    tx.execute(f"DELETE FROM remote_rows WHERE {_OF_KEY}", key)  # noqa: S608 - fixed text
