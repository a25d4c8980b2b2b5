"""Workers: the processes of a chain, one at a time, that end in order or are found dead.

Stored in ``chain_sessions``. Specified in ``docs/reference/chains.md``.
"""

from __future__ import annotations

import sqlite3

import msgspec

from cockpit.core.errors import IllegalTransition, NotFound
from cockpit.core.processes import current_process, is_process_alive
from cockpit.store.chains import chains, task_leases
from cockpit.store.chains.chains import Chain
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.chains import WorkerChanged
from cockpit.store.journal.details.detail import record_row


class Worker(msgspec.Struct, frozen=True):
    """One row of ``chain_sessions``."""

    chain_id: str
    ordinal: int
    """The worker's place in its chain, from 1."""
    process: str
    """Its process (:func:`cockpit.core.processes.current_process`)."""
    status: str
    """``running``, ``clean``, ``stopped`` or ``crashed``."""
    reason: str
    tokens: int
    """Tokens of its context that are used, against ``token_limit``."""
    token_limit: int
    dropped_share: float
    """The share of facts that its last packet left out, 0 to 1."""
    cost_usd: float
    """What it spent, in US dollars."""
    batches: int
    started_at: str
    beat_at: str
    """Its last heartbeat."""
    ended_at: str | None

    @property
    def owner(self) -> str:
        """Its name in leases: ``ch-3/s2``."""
        return worker_name(self.chain_id, self.ordinal)

    @property
    def pid(self) -> int:
        """The id of its process."""
        return int(self.process.partition("/")[0])


_SELECT = (
    "SELECT chain_id, ordinal, process, status, reason, tokens, token_limit, dropped_share, cost_usd,"
    " batches, started_at, beat_at, ended_at FROM chain_sessions"
)


def worker_name(chain_id: str, ordinal: int) -> str:
    """Return the name under which a worker holds leases: ``ch-3/s2``."""
    return f"{chain_id}/s{ordinal}"


def start(tx: Tx, chain: Chain, ordinal: int, *, token_limit: int) -> Worker:
    """Register this process as the chain's worker of that ordinal and journal it.

    Raises :class:`IllegalTransition` when the ordinal was used before, or another worker runs.
    """
    others = select_for_chain(tx.connection, chain.chain_id)
    running = [other for other in others if other.status == "running"]
    if running or any(other.ordinal >= ordinal for other in others):
        name = running[0].owner if running else worker_name(chain.chain_id, ordinal)
        raise IllegalTransition(f"{name} exists already; a chain has one worker at a time.")
    now = tx.now()
    tx.execute(
        "INSERT INTO chain_sessions(chain_id, ordinal, process, token_limit, started_at, beat_at)"
        " VALUES (?,?,?,?,?,?)",
        (chain.chain_id, ordinal, current_process(), token_limit, now, now),
    )
    worker = load(tx.connection, chain.chain_id, ordinal)
    _journal(tx, chain, worker)
    return worker


def record_heartbeat(
    tx: Tx,
    chain_id: str,
    ordinal: int,
    *,
    tokens: int,
    dropped_share: float,
    cost_usd: float,
    batches: int,
) -> Worker:
    """Record that the worker lives and what it has spent so far.

    Raises :class:`IllegalTransition` when it was declared dead in the meantime.
    """
    changed = tx.execute(
        "UPDATE chain_sessions SET tokens=?, dropped_share=?, cost_usd=?, batches=?, beat_at=?"
        " WHERE chain_id=? AND ordinal=? AND status='running'",
        (tokens, dropped_share, cost_usd, batches, tx.now(), chain_id, ordinal),
    )
    if changed.rowcount != 1:
        raise IllegalTransition(
            f"{worker_name(chain_id, ordinal)} sent no heartbeat for too long and was declared dead;"
            " another worker resumes its tasks."
        )
    return load(tx.connection, chain_id, ordinal)


def end(tx: Tx, chain: Chain, ordinal: int, status: str, reason: str) -> Worker:
    """End the worker in order, as ``clean`` or ``stopped``, and release its leases.

    Raises :class:`IllegalTransition` when it has ended already.
    """
    return _end(tx, chain, ordinal, status, reason)


def record_crash(tx: Tx, chain: Chain, ordinal: int, reason: str) -> Worker:
    """Record that the worker died; its leases are released and the next worker resumes its tasks."""
    return _end(tx, chain, ordinal, "crashed", reason)


def explain_death(worker: Worker) -> str:
    """Return why a worker that did not end counts as dead; empty while it lives."""
    gone = worker.status == "running" and not is_process_alive(worker.process)
    return "its process is gone" if gone else ""


def load(connection: sqlite3.Connection, chain_id: str, ordinal: int) -> Worker:
    """Read the chain's worker of that ordinal. Raises :class:`NotFound`."""
    row = connection.execute(
        f"{_SELECT} WHERE chain_id=? AND ordinal=?", (chain_id, ordinal)
    ).fetchone()
    if row is None:
        raise NotFound(f"There is no worker {worker_name(chain_id, ordinal)}.")
    return Worker(*row)


def select_for_chain(connection: sqlite3.Connection, chain_id: str) -> list[Worker]:
    """Read the chain's workers in order."""
    rows = connection.execute(f"{_SELECT} WHERE chain_id=? ORDER BY ordinal", (chain_id,))
    return [Worker(*row) for row in rows]


def _end(tx: Tx, chain: Chain, ordinal: int, status: str, reason: str) -> Worker:
    ended = tx.execute(
        "UPDATE chain_sessions SET status=?, reason=?, ended_at=? WHERE chain_id=? AND ordinal=?"
        " AND status='running'",
        (status, reason, tx.now(), chain.chain_id, ordinal),
    )
    if ended.rowcount != 1:
        raise IllegalTransition(f"{worker_name(chain.chain_id, ordinal)} has ended already.")
    freed = task_leases.release_all(tx, worker_name(chain.chain_id, ordinal))
    worker = load(tx.connection, chain.chain_id, ordinal)
    _journal(tx, chain, worker, tuple(freed))
    return worker


def _journal(tx: Tx, chain: Chain, worker: Worker, freed: tuple[str, ...] = ()) -> None:
    progress = chains.count_progress(tx.connection, chain)
    tx.journal(record_row(WorkerChanged, worker, progress=progress, freed=freed))
