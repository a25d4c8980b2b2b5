"""The steps in which a task is done, kept so that whoever takes it up goes on where it stood.

implement → test → (fix → test)* → spec_review → quality_review → merge → done, or blocked. Source:
design of work, "Doing a task".
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cockpit.core.canonical_json import canonical_json
from cockpit.core.errors import IllegalTransition
from cockpit.core.secrets import mask_value
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.event_types import Action

ENDS = ("done", "blocked")
"""The steps after which a run has no other."""


@dataclass(frozen=True, slots=True)
class Step:
    """One row of ``task_runs``. ``outcome`` is None while it is under way; ``attempt`` counts the
    steps of its kind in the run; ``detail`` is what the steps after it need to know."""

    task_id: str
    run: int
    position: int
    chain_id: str
    ordinal: int
    step: str
    attempt: int
    session_id: str | None
    outcome: str | None
    detail: Mapping[str, Any]
    started_at: str
    ended_at: str | None

    @property
    def open(self) -> bool:
        """It is under way, or was when its process died."""
        return self.outcome is None


_SELECT = (
    "SELECT task_id, run, position, chain_id, ordinal, step, attempt, session_id, outcome,"
    " detail_json, started_at, ended_at FROM task_runs"
)


def select_steps(connection: sqlite3.Connection, task_id: str) -> list[Step]:
    """The steps of the task's newest run, in order; none before the first."""
    rows = connection.execute(
        f"{_SELECT} WHERE task_id=?"  # noqa: S608 - fixed columns
        " AND run=(SELECT max(run) FROM task_runs WHERE task_id=?) ORDER BY position",
        (task_id, task_id),
    )
    return [_read(row) for row in rows]


def select_for_chain(connection: sqlite3.Connection, chain_id: str) -> list[Step]:
    """Every step that was taken in a chain, by task, run and place."""
    rows = connection.execute(
        f"{_SELECT} WHERE chain_id=? ORDER BY task_id, run, position", (chain_id,)
    )
    return [_read(row) for row in rows]


def begin(
    tx: Tx, task_id: str, run: int, step: str, *, chain_id: str, ordinal: int, **detail: Any
) -> Step:
    """The next step of a run, under way; the first one begins the run."""
    (position, attempt) = tx.execute(
        "SELECT coalesce(max(position),0)+1, coalesce(sum(step=?),0)+1 FROM task_runs"
        " WHERE task_id=? AND run=?",
        (step, task_id, run),
    ).fetchone()
    tx.execute(
        "INSERT INTO task_runs(task_id, run, position, chain_id, ordinal, step, attempt,"
        " detail_json, started_at) VALUES (?,?,?,?,?,?,?,?,?)",
        (
            task_id,
            run,
            position,
            chain_id,
            ordinal,
            step,
            attempt,
            canonical_json(mask_value(detail)),
            tx.now(),
        ),
    )
    begun = _at(tx, task_id, run, position)
    if position == 1:
        _told(tx, Action.TASK_RUN_STARTED, begun)
    _told(tx, Action.TASK_RUN_STEP, begun)
    return begun


def has_merged(connection: sqlite3.Connection, chain_id: str) -> bool:
    """Whether the chain merged anything into its branch."""
    return any(
        (step.step, step.outcome) == ("merge", "merged")
        for step in select_for_chain(connection, chain_id)
    )


def resume(tx: Tx, step: Step, *, chain_id: str, ordinal: int) -> Step:
    """The open ``step`` is gone on with here, perhaps by another session of the chain."""
    if (step.chain_id, step.ordinal) == (chain_id, ordinal):
        return step
    return _change(tx, step, chain_id=chain_id, ordinal=ordinal)


def attach_session(tx: Tx, step: Step, session_id: str) -> Step:
    """The engine session that takes this step."""
    return _change(tx, step, session_id=session_id)


def add_detail(tx: Tx, step: Step, **detail: Any) -> Step:
    """Keep more about a step that is under way."""
    return _change(
        tx, step, detail_json=canonical_json({**step.detail, **mask_value(dict(detail))})
    )


def end(tx: Tx, step: Step, outcome: str, **detail: Any) -> Step:
    """The step came to ``outcome``. One that has ended is not ended again: Raises
    :class:`IllegalTransition`."""
    if not _at(tx, step.task_id, step.run, step.position).open:
        raise IllegalTransition(f"{step.step} of {step.task_id} ended already.")
    merged = canonical_json({**step.detail, **mask_value(dict(detail))})
    ended = _change(tx, step, outcome=outcome, detail_json=merged, ended_at=tx.now())
    _told(tx, Action.TASK_RUN_STEP, ended)
    if ended.step in ENDS:
        _told(tx, Action.TASK_RUN_ENDED, ended)
    return ended


def _change(tx: Tx, step: Step, **columns: Any) -> Step:
    assignments = ", ".join(f"{name}=?" for name in columns)
    tx.execute(
        f"UPDATE task_runs SET {assignments} WHERE task_id=? AND run=? AND position=?",  # noqa: S608
        (*columns.values(), step.task_id, step.run, step.position),
    )
    return _at(tx, step.task_id, step.run, step.position)


def _told(tx: Tx, action: Action, step: Step) -> None:
    tx.journal(
        action,
        session_id=step.session_id or "",
        detail={
            "task_id": step.task_id,
            "run": step.run,
            "chain_id": step.chain_id,
            "ordinal": step.ordinal,
            "step": step.step,
            "attempt": step.attempt,
            "session_id": step.session_id or "",
            "outcome": step.outcome or "",
            "summary": str(step.detail.get("summary", ""))[:1_000],
        },
    )


def _at(tx: Tx, task_id: str, run: int, position: int) -> Step:
    row = tx.execute(
        f"{_SELECT} WHERE task_id=? AND run=? AND position=?", (task_id, run, position)
    ).fetchone()
    return _read(row)


def _read(row: tuple[Any, ...]) -> Step:
    values = list(row)
    values[9] = json.loads(values[9])
    return Step(*values)
