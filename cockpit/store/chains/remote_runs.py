"""Runs of tasks on other machines: who has each, what came back, and the rows and proposals of the workers.

A run is taken up under a fence, a number that rises each time: what a worker sends under a lower one is void.
Specified in ``docs/reference/remote-workers.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from cockpit.core.canonical_json import canonical_json, parse_json
from cockpit.core.errors import NotFound
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.chains import (
    RemoteRowsReceived,
    RemoteRunChanged,
)

UNDER_WAY = ("sent", "claimed")
MOST_LISTED = 1_000
MOST_WAITING = 32
"""Proposals of one run that wait for the user at the same time."""


class RemoteRun(msgspec.Struct, frozen=True):
    """One row of ``remote_runs``."""

    task_id: str
    run: int
    fence: int
    """How often it was taken up; 0: no worker has it yet."""
    state: str
    """``sent``, ``claimed``, ``returned`` (its result waits), ``taken`` (over) or ``withdrawn``."""
    worker: str
    base_commit: str
    result: Mapping[str, Any]
    tokens: int
    cost_usd: float | None


class RemoteProposal(msgspec.Struct, frozen=True):
    """One row of ``remote_proposals``: a worker's proposal, and the one that shows it here."""

    task_id: str
    run: int
    fence: int
    remote_id: str
    remote_digest: str
    proposal_id: str
    title: str
    risk: str
    body: Mapping[str, Any]
    answered: int


_SELECT = (
    "SELECT task_id, run, fence, state, worker, base_commit, result_json, tokens, cost_usd"
    " FROM remote_runs"
)
_PROPOSALS = (
    "SELECT task_id, run, fence, remote_id, remote_digest, proposal_id, title, risk, body_json, answered"
    " FROM remote_proposals"
)


def find(connection: sqlite3.Connection, task_id: str, run: int) -> RemoteRun | None:
    """Read a run, or None where it was never sent."""
    row = connection.execute(f"{_SELECT} WHERE task_id=? AND run=?", (task_id, run)).fetchone()
    return None if row is None else _read(row)


def find_newest(connection: sqlite3.Connection, task_id: str) -> RemoteRun | None:
    """Read the task's newest run on another machine, or None."""
    row = connection.execute(
        f"{_SELECT} WHERE task_id=? ORDER BY run DESC LIMIT 1", (task_id,)
    ).fetchone()
    return None if row is None else _read(row)


def load(connection: sqlite3.Connection, task_id: str, run: int) -> RemoteRun:
    """Read a run. Raises :class:`NotFound`."""
    if (remote := find(connection, task_id, run)) is None:
        raise NotFound(f"Run {run} of {task_id} was sent to no worker.")
    return remote


def select_open(connection: sqlite3.Connection, limit: int = MOST_LISTED) -> list[RemoteRun]:
    """Read the runs that are in the queue, with a worker, or back and not taken over, by task."""
    rows = connection.execute(
        f"{_SELECT} WHERE state IN ('sent','claimed','returned') ORDER BY state, task_id LIMIT ?",
        (limit,),
    )
    return [_read(row) for row in rows]


def select_returned(connection: sqlite3.Connection) -> list[tuple[str, int]]:
    """Return the tasks and runs whose result waits."""
    rows = connection.execute("SELECT task_id, run FROM remote_runs WHERE state='returned'")
    return [(str(task_id), int(run)) for task_id, run in rows]


def select_ended(connection: sqlite3.Connection) -> list[tuple[str, int]]:
    """Return the tasks and runs in the queue or with a worker whose task has ended meanwhile."""
    rows = connection.execute(
        "SELECT r.task_id, r.run FROM remote_runs r JOIN tasks t ON t.task_id=r.task_id"
        " WHERE r.state IN ('sent','claimed') AND t.status IN ('blocked','archived','done')"
    )
    return [(str(task_id), int(run)) for task_id, run in rows]


def send(tx: Tx, task_id: str, run: int, base_commit: str) -> RemoteRun:
    """Record that the run is put into the queue. Once: a run that was sent stays as it is."""
    if (before := find(tx.connection, task_id, run)) is not None and before.state != "withdrawn":
        return before
    tx.execute(
        "INSERT INTO remote_runs(task_id, run, state, base_commit) VALUES (?,?,'sent',?)"
        " ON CONFLICT(task_id, run) DO UPDATE SET state='sent', base_commit=excluded.base_commit",
        (task_id, run, base_commit),
    )
    sent = load(tx.connection, task_id, run)
    _journal(tx, task_id, run, sent.fence, "", "sent", commit=base_commit)
    return sent


def claim(tx: Tx, task_id: str, run: int, worker: str) -> int:
    """Give the run to ``worker``; return its fence, or 0 where the run is over."""
    current = find(tx.connection, task_id, run)
    if current is None or current.state not in UNDER_WAY:
        return 0
    fence = current.fence + 1
    tx.execute(
        "UPDATE remote_runs SET fence=?, worker=?, state='claimed' WHERE task_id=? AND run=?",
        (fence, worker, task_id, run),
    )
    _journal(tx, task_id, run, fence, worker, "claimed")
    return fence


def is_held(
    connection: sqlite3.Connection, task_id: str, run: int, fence: int, worker: str
) -> bool:
    """Whether the worker has the run under that number."""
    current = find(connection, task_id, run)
    return current is not None and (current.state, current.fence, current.worker) == (
        "claimed",
        fence,
        worker,
    )


def is_current(tx: Tx, task_id: str, run: int, fence: int, worker: str, what: str) -> bool:
    """Whether what a worker sent counts; journal it where not. ``what`` it is, for the journal."""
    current = find(tx.connection, task_id, run)
    if current is not None and (current.fence, current.worker) == (fence, worker):
        if current.state == "claimed":
            return True
        if current.state in ("returned", "taken"):
            return False  # it came twice: the first one counted
    journal_void(tx, task_id, run, fence, worker, what)
    return False


def journal_void(tx: Tx, task_id: str, run: int, fence: int, worker: str, what: str) -> None:
    """Journal that something a worker sent was not taken."""
    current = find(tx.connection, task_id, run)
    number = current.fence if current is not None and current.state in UNDER_WAY else 0
    _journal(tx, task_id, run, fence, worker, "void", summary=what, current=number)


def record_result(
    tx: Tx, task_id: str, run: int, fence: int, worker: str, result: Mapping[str, Any]
) -> bool:
    """Store a worker's result; False where it is void. ``result`` is of the shape of ``RunResult``."""
    if not is_current(tx, task_id, run, fence, worker, "result"):
        return False
    tokens, cost = int(result.get("tokens") or 0), result.get("cost_usd")
    tx.execute(
        "UPDATE remote_runs SET state='returned', result_json=?, tokens=tokens+?,"
        " cost_usd=coalesce(cost_usd, 0)+? WHERE task_id=? AND run=?",
        (canonical_json(dict(result)), tokens, cost, task_id, run),
    )
    _journal(
        *(tx, task_id, run, fence, worker, "returned"),
        outcome=str(result.get("status", "")),
        commit=str(result.get("commit", "")),
        tokens=tokens,
        cost_usd=cost,
        summary=str(result.get("summary", ""))[:1_000],
    )
    return True


def finish(tx: Tx, task_id: str, run: int) -> None:
    """Record that the result was taken over: the run is over."""
    tx.execute(
        "UPDATE remote_runs SET state='taken', result_json='' WHERE task_id=? AND run=?",
        (task_id, run),
    )


def give_back(tx: Tx, task_id: str, run: int) -> None:
    """Record that the run came back unfinished: it can be sent again."""
    tx.execute(
        "UPDATE remote_runs SET state='withdrawn', result_json='' WHERE task_id=? AND run=?",
        (task_id, run),
    )


def withdraw(tx: Tx, task_id: str, run: int) -> bool:
    """Take a run out that no worker has; False where one has it or had it."""
    changed = tx.execute(
        "UPDATE remote_runs SET state='withdrawn' WHERE task_id=? AND run=? AND state='sent'",
        (task_id, run),
    )
    if changed.rowcount != 1:
        return False
    fence = load(tx.connection, task_id, run).fence
    _journal(tx, task_id, run, fence, "", "withdrawn")
    return True


def _journal(
    tx: Tx, task_id: str, run: int, fence: int, worker: str, status: str, **more: Any
) -> None:
    event = RemoteRunChanged(
        task_id=task_id, run=run, fence=fence, worker=worker, status=status, **more
    )
    tx.journal(event, result="refused" if status == "void" else "ok")


# Rows of workers


def last_row(
    connection: sqlite3.Connection, task_id: str, run: int, fence: int
) -> tuple[int, str] | None:
    """Return the number and the line of the last row of a worker's journal that is here."""
    row = connection.execute(
        "SELECT seq, line FROM remote_rows WHERE task_id=? AND run=? AND fence=? ORDER BY seq DESC LIMIT 1",
        (task_id, run, fence),
    ).fetchone()
    return None if row is None else (int(row[0]), str(row[1]))


def select_rows(connection: sqlite3.Connection, task_id: str, run: int, fence: int) -> list[str]:
    """Read the lines of a worker's journal for one time that a run was taken up, in order."""
    rows = connection.execute(
        "SELECT line FROM remote_rows WHERE task_id=? AND run=? AND fence=? ORDER BY seq",
        (task_id, run, fence),
    )
    return [str(line) for (line,) in rows]


def add_rows(
    tx: Tx,
    task_id: str,
    run: int,
    fence: int,
    worker: str,
    rows: Sequence[tuple[int, str]],
    digest: str,
) -> None:
    """Store rows (number, line) whose chain was checked, and journal where it ends."""
    for seq, line in rows:
        tx.execute(
            "INSERT INTO remote_rows(task_id, run, fence, seq, line) VALUES (?,?,?,?,?)",
            (task_id, run, fence, seq, line),
        )
    tx.journal(
        RemoteRowsReceived(
            task_id=task_id,
            run=run,
            fence=fence,
            worker=worker,
            first=rows[0][0],
            last=rows[-1][0],
            digest=digest,
        )
    )


# Proposals of workers


def add_proposal(tx: Tx, proposal: RemoteProposal) -> bool:
    """Store a worker's proposal; False where it is here already."""
    changed = tx.execute(
        "INSERT OR IGNORE INTO remote_proposals(task_id, run, fence, remote_id, remote_digest, proposal_id,"
        " title, risk, body_json) VALUES (?,?,?,?,?,?,?,?,?)",
        (
            proposal.task_id,
            proposal.run,
            proposal.fence,
            proposal.remote_id,
            proposal.remote_digest,
            proposal.proposal_id,
            proposal.title,
            proposal.risk,
            canonical_json(dict(proposal.body)),
        ),
    )
    return changed.rowcount == 1


def count_unanswered(tx: Tx, task_id: str, run: int) -> int:
    """Count the proposals of a run that did not get their decision yet."""
    (count,) = tx.execute(
        "SELECT count(*) FROM remote_proposals WHERE task_id=? AND run=? AND answered=0",
        (task_id, run),
    ).fetchone()
    return int(count)


def show_anew(tx: Tx, proposal: RemoteProposal, proposal_id: str) -> None:
    """Record which proposal shows it here now."""
    tx.execute(
        "UPDATE remote_proposals SET proposal_id=? WHERE task_id=? AND run=? AND fence=? AND remote_id=?",
        (proposal_id, proposal.task_id, proposal.run, proposal.fence, proposal.remote_id),
    )


def select_unanswered(connection: sqlite3.Connection) -> list[RemoteProposal]:
    """Read the proposals of workers that did not get their decision yet."""
    rows = connection.execute(
        f"{_PROPOSALS} WHERE answered=0 ORDER BY proposal_id"
    )  # MOST_WAITING of each run at most: those of one run hide none of another
    return [RemoteProposal(*_with_json(row, 8)) for row in rows]


def set_answered(tx: Tx, proposal: RemoteProposal) -> None:
    """Record that the worker got the decision, or needs none any more."""
    tx.execute(
        "UPDATE remote_proposals SET answered=1 WHERE task_id=? AND run=? AND fence=? AND remote_id=?",
        (proposal.task_id, proposal.run, proposal.fence, proposal.remote_id),
    )


def _with_json(row: tuple[Any, ...], column: int) -> list[Any]:
    values = list(row)
    values[column] = parse_json(values[column]) if values[column] else {}
    return values


def _read(row: tuple[Any, ...]) -> RemoteRun:
    return RemoteRun(*_with_json(row, 6))
