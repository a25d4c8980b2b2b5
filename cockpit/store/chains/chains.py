"""Chains: one ``cockpit work`` run over a scope of the backlog, with as many workers as it takes.

running → draining → completed | stopped | failed | limited; any but ``completed`` can be resumed.
Specified in ``docs/reference/chains.md``.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Collection, Mapping
from itertools import count
from typing import Any

import msgspec

from cockpit.core.canonical_json import canonical_json, parse_json
from cockpit.core.errors import IllegalTransition, NotFound, Stale
from cockpit.core.processes import current_process, is_process_alive
from cockpit.core.secrets import mask_value
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.chains import ChainChanged, Progress
from cockpit.store.journal.details.detail import record_row

OPEN = ("running", "draining")
ENDED = ("completed", "stopped", "failed", "limited")
_ID = re.compile(r"(?:ch-?)?0*([1-9][0-9]{0,6})", re.ASCII | re.IGNORECASE)


class Chain(msgspec.Struct, frozen=True):
    """One row of ``chains``."""

    chain_id: str
    number: int
    scope_kind: str
    """``epic``, ``story`` or ``all``."""
    scope_id: str
    status: str
    reason: str
    stop_now: bool
    """Whether a draining chain also pauses the tasks in progress."""
    headless: bool
    batch: str
    """``auto`` or a number of tasks."""
    approve: str
    model: str | None
    runner: str | None
    max_chains: int
    """The most workers it may start."""
    max_cost: float | None
    """In US dollars; None: no limit."""
    max_wall_s: float | None
    """Seconds that its workers may run; None: no limit."""
    resume_until: str | None
    """The last moment at which it begins a batch or waits for a provider; empty: it never waits; None: no
    end."""
    base_branch: str
    base_commit: str
    branch: str
    """The branch into which tasks are merged, from ``base_commit`` on."""
    report_path: str | None
    summary: Mapping[str, Any]
    """What its report is built from."""
    owner: str | None
    """The process that supervises it, or None."""
    created_at: str
    updated_at: str
    began_at: str
    """When it was started or last resumed."""
    ended_at: str | None

    @property
    def scope(self) -> str:
        """The scope as text: ``epic E-1``, ``story S-2`` or ``the backlog``."""
        return "the backlog" if self.scope_kind == "all" else f"{self.scope_kind} {self.scope_id}"


_COLUMNS = (
    "chain_id, number, scope_kind, scope_id, status, reason, stop_now, headless, batch, approve,"
    " model, runner, max_chains, max_cost, max_wall_s, resume_until, base_branch, base_commit,"
    " branch, report_path, summary_json, owner, created_at, updated_at, began_at, ended_at"
)
_SELECT = f"SELECT {_COLUMNS} FROM chains"  # noqa: S608 - fixed columns


def create(
    tx: Tx,
    *,
    scope_kind: str,
    scope_id: str = "",
    headless: bool,
    batch: str,
    approve: str,
    model: str | None,
    runner: str | None,
    max_chains: int,
    max_cost: float | None,
    max_wall_s: float | None,
    resume_until: str | None = None,
    base_branch: str,
    base_commit: str,
    prefix: str = "cockpit/",
    taken: Collection[str] = (),
) -> Chain:
    """Create a chain that runs and is owned by this process.

    Its branch is ``ch-N`` behind ``prefix``, with a number appended when that name is in ``taken``. Limits
    are those of :class:`Chain`.
    """
    (highest,) = tx.execute("SELECT max(number) FROM chains").fetchone()
    number, now = (highest or 0) + 1, tx.now()
    chain_id = f"ch-{number}"
    branch, more = f"{prefix}{chain_id}", count(2)
    while branch in taken:
        branch = f"{prefix}{chain_id}-{next(more)}"
    tx.execute(
        "INSERT INTO chains(chain_id, number, scope_kind, scope_id, headless, batch, approve, model,"
        " runner, max_chains, max_cost, max_wall_s, resume_until, base_branch, base_commit, branch,"
        " owner, created_at, updated_at, began_at)"
        " VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
        (
            chain_id,
            number,
            scope_kind,
            scope_id,
            int(headless),
            batch,
            approve,
            model,
            runner,
            max_chains,
            max_cost,
            max_wall_s,
            resume_until,
            base_branch,
            base_commit,
            branch,
            current_process(),
            now,
            now,
            now,
        ),
    )
    chain = load(tx.connection, chain_id)
    _journal(tx, "created", chain, actor="person")
    return chain


def acquire(tx: Tx, chain_id: str) -> Chain:
    """Make this process the supervisor of the chain.

    Raises :class:`Stale` while another live process supervises it.
    """
    chain = load(tx.connection, chain_id)
    if chain.owner != current_process() and is_watched(chain):
        pid = (chain.owner or "").partition("/")[0]
        raise Stale(
            f"Process {pid} of this machine runs {chain_id}. Watch it with `cockpit chain watch "
            f"{chain_id}`, or stop it with `cockpit chain stop {chain_id}`."
        )
    return _change(tx, chain_id, owner=current_process())


def resume(tx: Tx, chain_id: str, **limits: Any) -> Chain:
    """Set a chain running again; its report no longer applies.

    ``limits`` replace the chain's own (``max_chains, max_cost, max_wall_s, approve, model, runner,
    batch``). Raises :class:`IllegalTransition` for a chain that is complete.
    """
    before = load(tx.connection, chain_id)
    if before.status == "completed":
        raise IllegalTransition(f"{chain_id} is complete. Start a new chain with `cockpit work`.")
    chain = _change(
        tx,
        chain_id,
        status="running",
        reason="",
        stop_now=0,
        began_at=tx.now(),
        ended_at=None,
        report_path=None,
        **limits,
    )
    if before.status != "running":
        _journal(tx, "resumed", chain, actor="person")
    return chain


def has_open(connection: sqlite3.Connection) -> bool:
    """Tell whether any chain has not ended by its row."""
    row = connection.execute(
        "SELECT 1 FROM chains WHERE status IN ('running','draining') LIMIT 1"
    ).fetchone()
    return row is not None


def is_watched(chain: Chain) -> bool:
    """Tell whether a live process supervises the chain."""
    return chain.owner is not None and is_process_alive(chain.owner)


def drain(tx: Tx, chain_id: str, *, now: bool = False, by: str = "person") -> Chain:
    """Stop the chain after the tasks in progress; with ``now``, pause these too.

    Calling it twice changes nothing more. Raises :class:`IllegalTransition` for a chain that has
    ended.
    """
    before = load(tx.connection, chain_id)
    if before.status not in OPEN:
        raise IllegalTransition(f"{chain_id} is {before.status} already.")
    if before.status == "draining" and (before.stop_now or not now):
        return before
    chain = _change(tx, chain_id, status="draining", stop_now=int(now or before.stop_now))
    _journal(tx, "draining", chain, actor=by)
    return chain


def end(tx: Tx, chain_id: str, status: str, reason: str) -> Chain:
    """End the chain in one of :data:`ENDED` and release its owner.

    Raises :class:`IllegalTransition` for a chain that has ended before.
    """
    before = load(tx.connection, chain_id)
    if before.status not in OPEN or status not in ENDED:
        raise IllegalTransition(f"{chain_id} is {before.status} and cannot end as {status}.")
    chain = _change(tx, chain_id, status=status, reason=reason, owner=None, ended_at=tx.now())
    _journal(tx, "ended", chain)
    return chain


def set_reason(tx: Tx, chain_id: str, reason: str) -> Chain:
    """Say why a running chain waits; empty: it does not."""
    return _change(tx, chain_id, reason=reason)


def record_report(tx: Tx, chain_id: str, path: str) -> Chain:
    """Record that the chain's report was written to ``path``."""
    chain = _change(tx, chain_id, report_path=path)
    _journal(tx, "reported", chain)
    return chain


def save_summary(tx: Tx, chain_id: str, summary: Mapping[str, Any]) -> Chain:
    """Store ``summary``, from which the report is built, replacing the previous one."""
    return _change(tx, chain_id, summary_json=canonical_json(mask_value(dict(summary))))


def count_progress(connection: sqlite3.Connection, chain: Chain) -> Progress:
    """Count the tasks in the chain's scope by status; of done ones those that this chain did."""
    where, values = scope_condition(chain)
    row = connection.execute(
        "SELECT count(*), coalesce(sum(t.status='done'),0), coalesce(sum(t.status='blocked'),0),"  # noqa: S608
        " coalesce(sum(t.status IN ('in_progress','review')),0), coalesce(sum(q.ready),0)"
        " FROM tasks t LEFT JOIN work_queue q USING(task_id)"
        f" WHERE t.status<>'archived' AND {where} AND (t.status<>'done' OR EXISTS"
        " (SELECT 1 FROM task_runs r WHERE r.task_id=t.task_id AND r.chain_id=?))",
        (*values, chain.chain_id),
    ).fetchone()
    return Progress(*(int(value) for value in row))


def scope_condition(chain: Chain) -> tuple[str, tuple[str, ...]]:
    """Return the SQL condition on ``tasks t`` for the chain's scope, and its values."""
    if chain.scope_kind == "story":
        return "t.story_id=?", (chain.scope_id,)
    if chain.scope_kind == "epic":
        return "t.story_id IN (SELECT story_id FROM stories WHERE epic_id=?)", (chain.scope_id,)
    return "1", ()


def read_id(text: str) -> str:
    """Read an id as users type it: ``ch-3``, ``CH3`` and ``3`` are ``ch-3``.

    Raises :class:`NotFound`.
    """
    match = _ID.fullmatch(text.strip())
    if match is None:
        raise NotFound(
            f"{text[:40]!r} is not a chain id. Write one like ch-3; `cockpit chain` lists them."
        )
    return f"ch-{int(match[1])}"


def load(connection: sqlite3.Connection, chain_id: str) -> Chain:
    """Read the chain of that id. Raises :class:`NotFound`."""
    row = connection.execute(f"{_SELECT} WHERE chain_id=?", (chain_id,)).fetchone()
    if row is None:
        raise NotFound(f"There is no chain {chain_id}; `cockpit chain` lists them.")
    return _read(row)


def select(connection: sqlite3.Connection, limit: int = 50) -> list[Chain]:
    """Read the newest chains first."""
    rows = connection.execute(f"{_SELECT} ORDER BY number DESC LIMIT ?", (limit,))
    return [_read(row) for row in rows]


def find_unfinished(connection: sqlite3.Connection) -> Chain | None:
    """Read the newest chain that is not complete, or None."""
    row = connection.execute(
        f"{_SELECT} WHERE status<>'completed' ORDER BY number DESC LIMIT 1"
    ).fetchone()
    return None if row is None else _read(row)


def _change(tx: Tx, chain_id: str, **columns: Any) -> Chain:
    assignments = ", ".join(f"{name}=?" for name in columns)
    tx.execute(
        f"UPDATE chains SET {assignments}, updated_at=? WHERE chain_id=?",  # noqa: S608 - names of ours
        (*columns.values(), tx.now(), chain_id),
    )
    return load(tx.connection, chain_id)


def _journal(tx: Tx, what: str, chain: Chain, *, actor: str = "engine") -> None:
    progress = count_progress(tx.connection, chain)
    stop_now = bool(chain.stop_now)
    event = record_row(ChainChanged, chain, what=what, progress=progress, stop_now=stop_now)
    failed = chain.status in ("failed", "limited")
    tx.journal(event, actor=actor, result="error" if failed else "ok")


def _read(row: tuple[Any, ...]) -> Chain:
    values = list(row)
    values[6], values[7], values[20] = bool(values[6]), bool(values[7]), parse_json(values[20])
    return Chain(*values)
