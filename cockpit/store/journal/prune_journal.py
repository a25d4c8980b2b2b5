"""Pruning the journal: its first rows go to an archive, and the rest stays verifiable.

Every transaction deletes a few rows and moves the anchor behind them, so that the journal verifies after
each of them, and after a crash. Rows of sessions that are not over, and rows that commands read
whatever their age, stay where they are. Specified in ``docs/reference/journal.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from cockpit.core.clock import format_time
from cockpit.core.errors import StoreBusy, StoreCorrupt
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.db.write_archive import Line, write_archive
from cockpit.store.journal import journal, prune_anchor, verify_chain
from cockpit.store.journal.details.store import JournalPruned
from cockpit.store.journal.event_types import Action
from cockpit.store.journal.prune_anchor import Anchor

BATCH = 200
"""Rows that one transaction looks at: some milliseconds."""

KEPT_ACTIONS = (
    Action.BACKLOG_PLANNED,
    Action.BATCH_CHANGED,
    Action.CHAIN_CHANGED,
    Action.CHAIN_SESSION_CHANGED,
    Action.CHAIN_NOTED,
    Action.ESTIMATE_LEARNED,
    Action.HANDOFF_ARCHIVED,
    Action.JOURNAL_PRUNED,
    Action.STORE_ARCHIVED,
    Action.TASK_RUN_STEP,
    Action.TASK_STATUS_CHANGED,
    Action.TRUST_CHANGED,
)
"""Event types that stay: handoffs, plans, estimates and measures of chains, ends of tasks, trust rules, what
was pruned."""

SESSION_IS_OVER = (
    "status IN ('completed','failed','stopped') AND updated_at<:before AND lease_owner IS NULL"
    " AND NOT EXISTS (SELECT 1 FROM wave_runs o WHERE o.session_id=sessions.session_id"
    " AND o.phase NOT IN ('completed','failed_terminal'))"
    " AND NOT EXISTS (SELECT 1 FROM events e WHERE e.source='session/'||sessions.session_id"
    " AND e.acked_at IS NULL AND e.dead_letter_at IS NULL)"
)
"""Condition on ``sessions``: it ended, did not change since ``before``, and has nothing to go on with."""

_MARKS = ",".join(f"'{action}'" for action in KEPT_ACTIONS)
_OPEN = f"SELECT session_id FROM sessions WHERE NOT ({SESSION_IS_OVER})"  # noqa: S608 - fixed text
_FREE = (  # fixed text
    f"digest IS NOT NULL AND action NOT IN ({_MARKS}) AND session_id NOT IN ({_OPEN})"  # noqa: S608
    " AND session_id NOT IN (SELECT session_id FROM journal p WHERE p.digest IS NULL)"
)
"""Condition on ``journal``: nothing reads the row any more."""
_FREE_IN_BATCH = _FREE.replace(
    f"session_id NOT IN ({_OPEN})",
    f"NOT EXISTS ({_OPEN} AND sessions.session_id=journal.session_id)",
)
"""The same, where few rows are looked at: it looks up their sessions, and not every session."""

Fold = Callable[[sqlite3.Connection, int], str]
"""Returns what metrics count up to a row, as JSON for the anchor."""


class JournalPruning(Struct, frozen=True):
    """What was deleted from the journal."""

    rows: int = 0
    """How many rows were deleted (or would be)."""
    until: int = 0
    """The last row that was pruned; 0 where nothing was."""
    archive: Path | None = None
    """None where nothing was pruned."""
    ahead: int = 0
    """Rows that are dated after now, and sessions that changed then: a clock was ahead. They may stay."""


def prune_journal(
    store: Store, before: str, fold: Fold, *, dry_run: bool = False
) -> JournalPruning:
    """Archive and delete the rows that were written before ``before`` and are not read any more.

    The rows are archived from the first to the last, rows that stay included, so that archives contain
    the whole chain. Raises :class:`StoreCorrupt` for a journal that does not verify, and
    :class:`~cockpit.core.errors.StoreUnwritable` when the archive cannot be written; then nothing was
    deleted.
    """
    start = store.read_now(prune_anchor.find) or prune_anchor.START
    now = format_time(store.clock.now())
    end = store.read_now(lambda connection: _last_before(connection, before, now, start))
    rows = store.read_now(lambda connection: _count_free(connection, before, end))
    if dry_run or not rows:
        ahead = store.read_now(lambda connection: _count_ahead(connection, now))
        return JournalPruning(rows, end if rows else 0, ahead=ahead)
    verdict = store.read_now(verify_chain.verify)
    if verdict.broken is not None:
        raise StoreCorrupt(
            f"The journal is not pruned, because it does not verify: {verdict.broken[1]}."
            " `cockpit debug journal` checks it."
        )
    moment = store.clock.now().strftime("%Y%m%dT%H%M%S%f")
    archive = store.read_now(
        lambda connection: write_archive(
            store.path.parent / "archive", f"journal-{moment}", _lines(connection, start, end)
        )
    )
    store.anchor.write()
    deleted = _delete_old_kept(store, before, start) + _move_anchor(
        store, before, fold, start, end, archive.name
    )
    ahead = store.read_now(lambda connection: _count_ahead(connection, now))
    done = JournalPruning(deleted, end, archive, ahead)
    store.write_now(lambda tx: _record(tx, done))
    return done


def _last_before(connection: sqlite3.Connection, before: str, now: str, start: Anchor) -> int:
    """Return the last row of the chain such that it and all rows before it are older than ``before``.

    A row that is dated after ``now`` is as old as what follows it: a clock was ahead when it was written.
    """
    newer = connection.execute(
        "SELECT seq FROM journal WHERE seq>? AND at>=? AND at<=? ORDER BY seq LIMIT 1",
        (start.seq, before, now),
    ).fetchone()
    last = connection.execute(
        "SELECT seq FROM journal WHERE seq>? AND (? IS NULL OR seq<?) AND at<? AND digest IS NOT NULL"
        " ORDER BY seq DESC LIMIT 1",
        (start.seq, newer and newer[0], newer and newer[0], before),
    ).fetchone()
    return int(last[0]) if last else start.seq


def _count_ahead(connection: sqlite3.Connection, now: str) -> int:
    (count,) = connection.execute(
        "SELECT (SELECT count(*) FROM journal WHERE at>:now)"
        " + (SELECT count(*) FROM sessions WHERE updated_at>:now)",
        {"now": now},
    ).fetchone()
    return int(count)


def _count_free(connection: sqlite3.Connection, before: str, end: int) -> int:
    (count,) = connection.execute(
        f"SELECT count(*) FROM journal WHERE seq<=:end AND {_FREE}",  # noqa: S608 - fixed text
        {"end": end, "before": before},
    ).fetchone()
    return int(count)


def _lines(connection: sqlite3.Connection, start: Anchor, end: int) -> Iterator[Line]:
    """Yield where the archive's rows begin, then the rows."""
    yield "journal_anchor", {"seq": start.seq, "digest": start.digest, "archive": start.archive}
    rows = connection.execute(
        f"{journal.SELECT} WHERE seq>? AND seq<=? AND digest IS NOT NULL ORDER BY seq",
        (start.seq, end),
    )
    for columns in rows:
        yield "journal", dict(zip(journal.COLUMNS, columns, strict=True))


def _move_anchor(
    store: Store, before: str, fold: Fold, start: Anchor, end: int, archive: str
) -> int:
    """Delete rows after ``start`` up to ``end`` in batches, with the anchor; returns how many."""
    deleted, at = 0, start.seq
    while at < end:
        to = store.read_now(lambda connection, at=at: _batch_end(connection, at, end))  # type: ignore[misc] # bound per turn
        metrics = store.read_now(lambda connection, to=to: fold(connection, to))  # type: ignore[misc] # bound per turn

        def step(tx: Tx, at: int = at, to: int = to, metrics: str = metrics) -> int:
            rows, free = _batch(tx.connection, before, at, to)
            kept = [row for row in rows if row[0] not in free]
            old = _load(tx.connection, at)
            _delete(tx, free)
            prune_anchor.store_anchor(
                tx.connection,
                Anchor(
                    to,
                    rows[-1][-1],
                    old.sealed + len(rows),
                    metrics,
                    archive,
                    tx.now(),
                    old.kept + len(kept),
                    prune_anchor.add_digests(old.kept_sum, kept),
                ),
            )
            return len(free)

        deleted += store.write_now(step)
        at = to
    return deleted


def _delete_old_kept(store: Store, before: str, start: Anchor) -> int:
    """Delete rows before the anchor that stayed at an earlier pruning and are not read any more.

    They are in the archive of that pruning.
    """
    deleted = at = 0
    while at < start.seq:
        to = store.read_now(lambda connection, at=at: _batch_end(connection, at, start.seq))  # type: ignore[misc] # bound per turn

        def step(tx: Tx, at: int = at, to: int = to) -> int:
            rows, free = _batch(tx.connection, before, at, to)
            gone = [row for row in rows if row[0] in free]
            if gone:
                old = _load(tx.connection, start.seq)
                _delete(tx, free)
                kept_sum = prune_anchor.add_digests(old.kept_sum, (), gone)
                prune_anchor.store_anchor(
                    tx.connection, replace(old, kept=old.kept - len(gone), kept_sum=kept_sum)
                )
            return len(gone)

        deleted += store.write_now(step)
        at = to
    return deleted


def _load(connection: sqlite3.Connection, seq: int) -> Anchor:
    """Return the anchor, which must be at ``seq``: another process may prune at the same time."""
    current = prune_anchor.find(connection) or prune_anchor.START
    if current.seq != seq:
        raise StoreBusy(
            "Another process pruned the journal at the same time. Nothing is lost; prune again."
        )
    return current


def _batch_end(connection: sqlite3.Connection, after: int, end: int) -> int:
    """Return the last of the next sealed rows after ``after``, at most ``end``."""
    row = connection.execute(
        "SELECT max(seq) FROM (SELECT seq FROM journal WHERE seq>? AND seq<=?"
        " AND digest IS NOT NULL ORDER BY seq LIMIT ?)",
        (after, end, BATCH),
    ).fetchone()
    return end if row[0] is None else int(row[0])


def _batch(
    connection: sqlite3.Connection, before: str, after: int, to: int
) -> tuple[list[tuple[Any, ...]], set[int]]:
    """Return the sealed rows of a batch, and which of them may be deleted now."""
    rows = connection.execute(
        f"{journal.SELECT} WHERE seq>? AND seq<=? AND digest IS NOT NULL ORDER BY seq", (after, to)
    ).fetchall()
    free = connection.execute(
        f"SELECT seq FROM journal WHERE seq>:after AND seq<=:to AND {_FREE_IN_BATCH}",  # noqa: S608 - fixed text
        {"after": after, "to": to, "before": before},
    )
    return rows, {seq for (seq,) in free}


def _delete(tx: Tx, seqs: set[int]) -> None:
    tx.connection.executemany("DELETE FROM journal WHERE seq=?", [(seq,) for seq in sorted(seqs)])


def _record(tx: Tx, done: JournalPruning) -> None:
    current = prune_anchor.find(tx.connection) or prune_anchor.START
    tx.journal(
        JournalPruned(
            seq=current.seq,
            digest=current.digest,
            rows=done.rows,
            kept=current.kept,
            archive=current.archive,
        ),
        actor="person",
    )
