"""The steps in which a task is done, stored so that another worker can resume where one stopped.

implement → test → (fix → test)* → spec_review → quality_review → merge → done, or blocked.
Specified in ``docs/reference/task-types.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

import msgspec

from cockpit.core.canonical_json import canonical_json, parse_json
from cockpit.core.errors import IllegalTransition
from cockpit.core.secrets import mask_value
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.detail import record_row
from cockpit.store.journal.details.tasks import TaskRunStep

ENDS = ("done", "blocked")
"""The steps that end a run."""


class Step(msgspec.Struct, frozen=True):
    """One row of ``task_runs``."""

    task_id: str
    run: int
    """Counts the runs of the task, from 1."""
    position: int
    """The place of the step in its run, from 1."""
    chain_id: str
    ordinal: int
    """The worker of the chain that takes the step, from 1."""
    step: str
    attempt: int
    """Counts the steps of this kind in the run, from 1."""
    session_id: str | None
    """The engine session that takes the step, once it has begun."""
    outcome: str | None
    """None while the step is in progress."""
    detail: Mapping[str, Any]
    """What later steps need to know."""
    started_at: str
    ended_at: str | None

    @property
    def open(self) -> bool:
        """Whether the step is in progress, or was when its process died."""
        return self.outcome is None


_SELECT = (
    "SELECT task_id, run, position, chain_id, ordinal, step, attempt, session_id, outcome,"
    " detail_json, started_at, ended_at FROM task_runs"
)


def select_steps(connection: sqlite3.Connection, task_id: str) -> list[Step]:
    """Read the steps of the task's newest run, in order; none before the first run."""
    rows = connection.execute(
        f"{_SELECT} WHERE task_id=?"  # noqa: S608 - fixed columns
        " AND run=(SELECT max(run) FROM task_runs WHERE task_id=?) ORDER BY position",
        (task_id, task_id),
    )
    return [_read(row) for row in rows]


def select_for_chain(connection: sqlite3.Connection, chain_id: str) -> list[Step]:
    """Read every step that a chain took, by task, run and position."""
    rows = connection.execute(
        f"{_SELECT} WHERE chain_id=? ORDER BY task_id, run, position", (chain_id,)
    )
    return [_read(row) for row in rows]


def find_base_tests(connection: sqlite3.Connection, chain_id: str) -> Mapping[str, Any] | None:
    """Return what a chain's first implementer noted of the tests before any change, if it has."""
    row = connection.execute(
        "SELECT detail_json ->> '$.base' FROM task_runs WHERE chain_id=? AND chain_id<>''"
        " AND detail_json ->> '$.base' IS NOT NULL LIMIT 1",
        (chain_id,),
    ).fetchone()
    return None if row is None else parse_json(row[0])


def begin(
    tx: Tx, task_id: str, run: int, step: str, *, chain_id: str, ordinal: int, **detail: Any
) -> Step:
    """Start the next step of a run and journal it; the first step starts the run.

    ``detail`` is what later steps need to know; secrets in it are masked.
    """
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
    _journal(tx, begun)
    return begun


def has_merged(connection: sqlite3.Connection, chain_id: str) -> bool:
    """Tell whether the chain merged anything into its branch."""
    return any(
        (step.step, step.outcome) == ("merge", "merged")
        for step in select_for_chain(connection, chain_id)
    )


def resume(tx: Tx, step: Step, *, chain_id: str, ordinal: int) -> Step:
    """Assign the open ``step`` to this worker of the chain."""
    if (step.chain_id, step.ordinal) == (chain_id, ordinal):
        return step
    return _change(tx, step, chain_id=chain_id, ordinal=ordinal)


def attach_session(tx: Tx, step: Step, session_id: str) -> Step:
    """Record the engine session that takes this step; it belongs to the step's chain."""
    if step.chain_id:
        tx.execute("UPDATE sessions SET chain_id=? WHERE session_id=?", (step.chain_id, session_id))
    return _change(tx, step, session_id=session_id)


def add_detail(tx: Tx, step: Step, **detail: Any) -> Step:
    """Add to the detail of a step that is in progress."""
    return _change(
        tx, step, detail_json=canonical_json({**step.detail, **mask_value(dict(detail))})
    )


def end(tx: Tx, step: Step, outcome: str, **detail: Any) -> Step:
    """End the step with ``outcome`` and journal it.

    Raises :class:`IllegalTransition` for a step that has ended already.
    """
    if not _at(tx, step.task_id, step.run, step.position).open:
        raise IllegalTransition(f"The step {step.step} of {step.task_id} has ended already.")
    merged = canonical_json({**step.detail, **mask_value(dict(detail))})
    ended = _change(tx, step, outcome=outcome, detail_json=merged, ended_at=tx.now())
    _journal(tx, ended)
    return ended


def _change(tx: Tx, step: Step, **columns: Any) -> Step:
    assignments = ", ".join(f"{name}=?" for name in columns)
    tx.execute(
        f"UPDATE task_runs SET {assignments} WHERE task_id=? AND run=? AND position=?",  # noqa: S608
        (*columns.values(), step.task_id, step.run, step.position),
    )
    return _at(tx, step.task_id, step.run, step.position)


def _journal(tx: Tx, step: Step) -> None:
    event = record_row(
        TaskRunStep,
        step,
        session_id=step.session_id or "",
        outcome=step.outcome or "",
        summary=str(step.detail.get("summary", ""))[:1_000],
    )
    tx.journal(event, session_id=step.session_id or "")


def _at(tx: Tx, task_id: str, run: int, position: int) -> Step:
    row = tx.execute(
        f"{_SELECT} WHERE task_id=? AND run=? AND position=?", (task_id, run, position)
    ).fetchone()
    return _read(row)


def _read(row: tuple[Any, ...]) -> Step:
    values = list(row)
    values[9] = parse_json(values[9])
    return Step(*values)
