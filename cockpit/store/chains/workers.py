"""The sessions of a chain: one process each, that ends in order or is found dead.

Source: design of work, "Chains"; seed 004, solution 7.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from cockpit.core.errors import IllegalTransition, NotFound
from cockpit.core.processes import current_process, is_process_alive
from cockpit.store.chains import chains, task_leases
from cockpit.store.chains.chains import Chain
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.event_types import Action

END_REASONS: Final[Mapping[str, str]] = {
    "pressure": "handed over: its context was full",
    "quota": "handed over: its batches were done",
    "empty": "nothing was left to do",
    "held": "others held what was left",
    "drained": "came to rest",
    "limit": "the chain's limit of cost or time was reached",
    "stopped": "was stopped",
}
"""Why a session ended in order, for a person; a reason that is not here is in words already."""


@dataclass(frozen=True, slots=True)
class Worker:
    """One row of ``chain_sessions``. ``tokens`` against ``token_limit`` and ``dropped_share`` (0 to 1)
    are its context pressure; ``cost_usd`` is what it spent."""

    chain_id: str
    ordinal: int
    process: str
    status: str
    reason: str
    tokens: int
    token_limit: int
    dropped_share: float
    cost_usd: float
    batches: int
    started_at: str
    beat_at: str
    ended_at: str | None

    @property
    def owner(self) -> str:
        """As its leases name it: ``ch-3/s2``."""
        return worker_name(self.chain_id, self.ordinal)

    @property
    def pid(self) -> int:
        """The number of its process."""
        return int(self.process.partition("/")[0])

    def body(self) -> dict[str, Any]:
        """As the journal and commands give it out."""
        return {
            "chain_id": self.chain_id,
            "ordinal": self.ordinal,
            "pid": self.pid,
            "status": self.status,
            "reason": self.reason,
            "tokens": self.tokens,
            "token_limit": self.token_limit,
            "dropped_share": self.dropped_share,
            "cost_usd": self.cost_usd,
            "batches": self.batches,
            "started_at": self.started_at,
            "beat_at": self.beat_at,
            "ended_at": self.ended_at,
        }


_SELECT = (
    "SELECT chain_id, ordinal, process, status, reason, tokens, token_limit, dropped_share, cost_usd,"
    " batches, started_at, beat_at, ended_at FROM chain_sessions"
)


def worker_name(chain_id: str, ordinal: int) -> str:
    """The name under which a session holds leases."""
    return f"{chain_id}/s{ordinal}"


def start(tx: Tx, chain: Chain, ordinal: int, *, token_limit: int) -> Worker:
    """This process is the chain's session of that ordinal.

    Raises :class:`IllegalTransition` when that session was there before, or another one runs.
    """
    others = select_for_chain(tx.connection, chain.chain_id)
    running = [other for other in others if other.status == "running"]
    if running or any(other.ordinal >= ordinal for other in others):
        name = running[0].owner if running else worker_name(chain.chain_id, ordinal)
        raise IllegalTransition(f"{name} is there already; a chain has one session at a time.")
    now = tx.now()
    tx.execute(
        "INSERT INTO chain_sessions(chain_id, ordinal, process, token_limit, started_at, beat_at)"
        " VALUES (?,?,?,?,?,?)",
        (chain.chain_id, ordinal, current_process(), token_limit, now, now),
    )
    worker = load(tx.connection, chain.chain_id, ordinal)
    _told(tx, Action.CHAIN_SESSION_STARTED, chain, worker)
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
    """Say that the session lives, and what it spent so far.

    Raises :class:`IllegalTransition` when it was given up for dead meanwhile.
    """
    changed = tx.execute(
        "UPDATE chain_sessions SET tokens=?, dropped_share=?, cost_usd=?, batches=?, beat_at=?"
        " WHERE chain_id=? AND ordinal=? AND status='running'",
        (tokens, dropped_share, cost_usd, batches, tx.now(), chain_id, ordinal),
    )
    if changed.rowcount != 1:
        raise IllegalTransition(
            f"{worker_name(chain_id, ordinal)} was silent too long and is no session any more; another "
            "one goes on with what it did."
        )
    return load(tx.connection, chain_id, ordinal)


def end(tx: Tx, chain: Chain, ordinal: int, status: str, reason: str) -> Worker:
    """The session ends in order: ``clean`` or ``stopped``. Its leases are free.

    Raises :class:`IllegalTransition` when it has ended already.
    """
    return _end(tx, chain, ordinal, status, reason, Action.CHAIN_SESSION_ENDED)


def record_crash(tx: Tx, chain: Chain, ordinal: int, reason: str) -> Worker:
    """The session is found dead. Its leases are free; what it did is taken up by the next one."""
    return _end(tx, chain, ordinal, "crashed", reason, Action.CHAIN_SESSION_CRASHED)


def explain_death(worker: Worker) -> str:
    """Why the session, which did not end, counts as dead; empty while it lives."""
    gone = worker.status == "running" and not is_process_alive(worker.process)
    return "its process is gone" if gone else ""


def load(connection: sqlite3.Connection, chain_id: str, ordinal: int) -> Worker:
    """The chain's session of that ordinal. Raises :class:`NotFound`."""
    row = connection.execute(
        f"{_SELECT} WHERE chain_id=? AND ordinal=?", (chain_id, ordinal)
    ).fetchone()
    if row is None:
        raise NotFound(f"There is no session {worker_name(chain_id, ordinal)}.")
    return Worker(*row)


def select_for_chain(connection: sqlite3.Connection, chain_id: str) -> list[Worker]:
    """The chain's sessions in order."""
    rows = connection.execute(f"{_SELECT} WHERE chain_id=? ORDER BY ordinal", (chain_id,))
    return [Worker(*row) for row in rows]


def _end(tx: Tx, chain: Chain, ordinal: int, status: str, reason: str, action: Action) -> Worker:
    ended = tx.execute(
        "UPDATE chain_sessions SET status=?, reason=?, ended_at=? WHERE chain_id=? AND ordinal=?"
        " AND status='running'",
        (status, reason, tx.now(), chain.chain_id, ordinal),
    )
    if ended.rowcount != 1:
        raise IllegalTransition(f"{worker_name(chain.chain_id, ordinal)} has ended already.")
    freed = task_leases.release_all(tx, worker_name(chain.chain_id, ordinal))
    worker = load(tx.connection, chain.chain_id, ordinal)
    _told(tx, action, chain, worker, freed=list(freed))
    return worker


def _told(tx: Tx, action: Action, chain: Chain, worker: Worker, **more: Any) -> None:
    tasks = chains.count_progress(tx.connection, chain)
    tx.journal(action, detail={**worker.body(), "progress": tasks.body(), **more})
