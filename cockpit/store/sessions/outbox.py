"""The outbox: actions that were planned, queued and dispatched, with their receipts.

planned → queued → dispatched → confirmed | failed_retryable → dispatched … | failed_terminal |
uncertain. ``dispatched`` is durable before the effect; the receipt and the final phase are one
transaction. Specified in ``docs/reference/kernel.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from msgspec import Struct, structs

from cockpit.core.canonical_json import canonical_json, digest, parse_json
from cockpit.core.clock import format_time, milliseconds_between
from cockpit.core.errors import Altered, IllegalTransition, NotFound
from cockpit.core.secrets import mask, mask_value, masked_json
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.proposals import (
    ActionConfirmed,
    ActionDispatched,
    ActionFailed,
    ActionQueued,
    ActionRetried,
    ActionUncertain,
    OfAction,
)
from cockpit.store.sessions import proposals

PHASES = (
    *("planned", "queued", "dispatched", "confirmed"),
    *("failed_retryable", "failed_terminal", "uncertain"),
)


class OutboxAction(Struct, frozen=True):
    """One row of ``outbox_actions``."""

    action_id: str
    wave_id: str
    session_id: str
    proposal_id: str | None
    position: int
    """Its place in the wave's plan."""
    key: str
    """The idempotency key."""
    action_type: str
    title: str
    payload: Mapping[str, Any]
    phase: str
    attempts: int
    max_attempts: int
    next_retry_at: str | None
    lease_owner: str | None
    last_error: str


class Receipt(Struct, frozen=True):
    """The receipt of one attempt; receipts never change."""

    receipt_id: str
    action_id: str
    attempt: int
    status: str
    terminal: bool
    summary: str
    detail: Mapping[str, Any]


_COLUMNS = (
    "action_id, wave_id, session_id, proposal_id, position, idempotency_key, action_type, title,"
    " payload_json, phase, attempts, max_attempts, next_retry_at, lease_owner, last_error"
)
_SELECT = f"SELECT {_COLUMNS} FROM outbox_actions"  # noqa: S608 - fixed columns
_PLAN = (
    "INSERT INTO outbox_actions(action_id, wave_id, session_id, position, idempotency_key,"
    " action_type, target_adapter, title, payload_json, phase, max_attempts, created_at, updated_at)"
    " VALUES (?,?,?,?,?,?,?,?,?,'planned',?,?,?)"
    " ON CONFLICT(idempotency_key) DO NOTHING"
)
# No RETURNING: SQLite makes a temporary table for it.
_ENQUEUE = (
    "UPDATE outbox_actions SET phase='queued', proposal_id=?, payload_json=?, updated_at=?"
    " WHERE action_id=? AND phase='planned'"
)
_SETTLE = (
    "UPDATE outbox_actions SET phase=?, last_error=?, next_retry_at=?, lease_owner=NULL,"
    " updated_at=? WHERE action_id=?"
)


def plan(
    tx: Tx,
    *,
    wave_id: str,
    session_id: str,
    position: int,
    key: str,
    action_type: str,
    title: str,
    payload: Mapping[str, Any],
    max_attempts: int = 3,
) -> OutboxAction:
    """Store an intended action in phase ``planned``. Idempotent by ``key``."""
    action_id, title, now = tx.ids.new("a"), mask(title), tx.now()
    payload_json = masked_json(dict(payload))
    values = (
        *(action_id, wave_id, session_id, position, key, action_type, action_type, title),
        *(payload_json, max_attempts, now, now),
    )
    if tx.execute(_PLAN, values).rowcount != 1:
        return _read(tx.execute(f"{_SELECT} WHERE idempotency_key=?", (key,)).fetchone())
    return OutboxAction(
        *(action_id, wave_id, session_id, None, position, key, action_type, title),
        *(parse_json(payload_json), "planned", 0, max_attempts, None, None, ""),
    )


def enqueue(
    tx: Tx, action_id: str, *, proposal_id: str | None, payload: Mapping[str, Any]
) -> OutboxAction:
    """Queue an approved action with exactly the ``payload`` that was shown.

    Raises :class:`~cockpit.core.errors.Altered` unless the proposal was approved as it is.
    """
    if proposal_id is not None:
        proposals.load_approved(tx.connection, proposal_id)
    planned = _from(tx, action_id, ("planned",))
    payload_json, now = masked_json(dict(payload)), tx.now()
    tx.execute(_ENQUEUE, (proposal_id, payload_json, now, action_id))
    queued = structs.replace(
        planned, phase="queued", proposal_id=proposal_id, payload=parse_json(payload_json)
    )
    return _queued(tx, queued, now)


def drop(tx: Tx, action_id: str, reason: str) -> OutboxAction:
    """End a planned action that was refused, rejected, discussed or expired."""
    _from(tx, action_id, ("planned",))
    tx.execute(
        "UPDATE outbox_actions SET phase='failed_terminal', last_error=?, updated_at=?"
        " WHERE action_id=?",
        (mask(reason), tx.now(), action_id),
    )
    return load(tx.connection, action_id)


def dispatch(tx: Tx, action_id: str, owner: str) -> OutboxAction | None:
    """Claim a queued (or due retryable) action, durably before its effect.

    Returns None if another process has it or it is not due. Raises :class:`~cockpit.core.errors.Altered`
    for one that is not as it was queued; :func:`refuse_altered` ends it.
    """
    if load(tx.connection, action_id).phase not in ("queued", "failed_retryable"):
        return None
    require_as_queued(tx, action_id)
    changed = tx.execute(
        "UPDATE outbox_actions SET phase='dispatched', attempts=attempts+1, lease_owner=?,"
        " next_retry_at=NULL, updated_at=? WHERE action_id=? AND (phase='queued' OR"
        " (phase='failed_retryable' AND (next_retry_at IS NULL OR next_retry_at<=?)))",
        (owner, tx.now(), action_id, tx.now()),
    )
    if changed.rowcount != 1:
        return None
    action = load(tx.connection, action_id)
    return _journal(tx, action, ActionDispatched(**_head(action), attempt=action.attempts))


def require_as_queued(tx: Tx, action_id: str) -> OutboxAction:
    """Read an action that is to be run or probed.

    Raises :class:`~cockpit.core.errors.Altered` unless it is what its proposal was approved for, if it has
    one.
    """
    action = load(tx.connection, action_id)
    if action.proposal_id is not None:
        body = proposals.load_approved(tx.connection, action.proposal_id).body
        approved = body.get("payload"), body.get("key"), body.get("type")
        if approved != (action.payload, action.key, action.action_type):
            raise Altered(
                f"Action {action.action_id} ({action.title}) is not as it was approved: the outbox was"
                " changed in the store. It was not run."
            )
    return action


def refuse_altered(tx: Tx, action_id: str, message: str) -> OutboxAction:
    """End an action that is not as it was queued: it is not run, and stays for the user to look at."""
    ended = _settle(tx, load(tx.connection, action_id), "failed_terminal", message)
    failed = ActionFailed(**_head(ended), message=message, receipt={})
    return _journal(tx, ended, failed, "error", "altered")


def confirm(tx: Tx, action_id: str, *, summary: str, detail: Mapping[str, Any]) -> OutboxAction:
    """Record that the effect happened: final receipt and phase in one transaction."""
    action = _from(tx, action_id, ("dispatched", "uncertain"))
    took = _took_ms(tx, action_id)
    receipt = _receipt(tx, action, "success", True, summary, detail)
    ended = _settle(tx, action, "confirmed", "")
    confirmed = ActionConfirmed(**_head(action), summary=summary, receipt=receipt)
    return _journal(tx, ended, confirmed, latency_ms=took)


def fail(
    tx: Tx,
    action_id: str,
    *,
    status: str,
    summary: str,
    detail: Mapping[str, Any],
    retry_in_s: float | None = None,
    error_code: str = "",
) -> OutboxAction:
    """Record that the attempt failed; ``status`` is ``failure`` or ``timeout``.

    With ``retry_in_s`` and attempts left it will be tried again; otherwise the failure is final.
    """
    action = _from(tx, action_id, ("dispatched", "uncertain"))
    again = retry_in_s is not None and action.attempts < action.max_attempts
    took = _took_ms(tx, action_id)
    receipt = _receipt(tx, action, status, not again, summary, detail)
    if again and retry_in_s is not None:
        retry_at = format_time(tx.clock.now() + timedelta(seconds=retry_in_s))
        ended = _settle(tx, action, "failed_retryable", summary, retry_at)
        retried = ActionRetried(**_head(action), message=summary, wait_s=retry_in_s)
        return _journal(tx, ended, retried, "error", error_code, took)
    ended = _settle(tx, action, "failed_terminal", summary)
    failed = ActionFailed(**_head(action), message=summary, receipt=receipt)
    return _journal(tx, ended, failed, "error", error_code, took)


def mark_uncertain(tx: Tx, action_id: str, message: str) -> OutboxAction:
    """Record that the effect may or may not have happened; the user is asked."""
    action = _from(tx, action_id, ("dispatched",))
    ended = _settle(tx, action, "uncertain", message)
    return _journal(tx, ended, ActionUncertain(**_head(action), message=message), "error")


def requeue(tx: Tx, action_id: str) -> OutboxAction:
    """Queue an action again after a probe (or the user) said that its effect did not happen."""
    action = _from(tx, action_id, ("dispatched", "uncertain"))
    ended = _settle(tx, action, "queued", "")
    return _queued(tx, ended)


def load(connection: sqlite3.Connection, action_id: str) -> OutboxAction:
    """Read the action of that id. Raises :class:`NotFound`."""
    row = connection.execute(f"{_SELECT} WHERE action_id=?", (action_id,)).fetchone()
    if row is None:
        raise NotFound(f"There is no action {action_id}; `cockpit debug outbox` lists them.")
    return _read(row)


def select_for_wave(connection: sqlite3.Connection, wave_id: str) -> list[OutboxAction]:
    """Read a wave's actions in the order in which they were planned."""
    rows = connection.execute(f"{_SELECT} WHERE wave_id=? ORDER BY position, rowid", (wave_id,))
    return [_read(row) for row in rows]


def select_for_session(connection: sqlite3.Connection, session_id: str) -> list[OutboxAction]:
    """Read a session's actions in the order in which they were planned.

    They are found by the session's waves, so that payloads of other sessions are not read.
    """
    rows = connection.execute(
        f"{_SELECT} WHERE wave_id IN (SELECT wave_id FROM wave_runs WHERE session_id=?)"  # noqa: S608 - fixed columns
        " ORDER BY created_at, position",
        (session_id,),
    )
    return [_read(row) for row in rows]


def select_recent(
    connection: sqlite3.Connection,
    limit: int,
    *,
    phase: str | None = None,
    session_id: str | None = None,
) -> list[OutboxAction]:
    """Read actions of one phase and session (None: of all), newest first."""
    where, values = ["outbox_actions.rowid>0"], []
    if phase is not None:
        where.append("phase=?")
        values.append(phase)
    if session_id is not None:
        where.append("wave_id IN (SELECT wave_id FROM wave_runs WHERE session_id=?)")
        values.append(session_id)
    rows = connection.execute(
        f"{_SELECT} WHERE {' AND '.join(where)} ORDER BY outbox_actions.rowid DESC LIMIT ?",
        (*values, limit),
    )
    return [_read(row) for row in rows]


def select_receipts(connection: sqlite3.Connection, action_id: str) -> list[Receipt]:
    """Read the receipts of an action, oldest first."""
    rows = connection.execute(
        "SELECT receipt_id, action_id, attempt, status, terminal, summary, detail_json"
        " FROM action_receipts WHERE action_id=? ORDER BY rowid",
        (action_id,),
    )
    return [
        Receipt(identity, action, attempt, status, bool(terminal), summary, parse_json(detail))
        for identity, action, attempt, status, terminal, summary, detail in rows
    ]


def _queued(tx: Tx, action: OutboxAction, at: str = "") -> OutboxAction:
    """Journal that the action may run, with the digest of what it will do."""
    event = ActionQueued(
        **_head(action),
        proposal_id=action.proposal_id or "",
        key=action.key,
        payload_digest=digest(action.payload),
    )
    return _journal(tx, action, event, at=at)


def _from(tx: Tx, action_id: str, phases: tuple[str, ...]) -> OutboxAction:
    action = load(tx.connection, action_id)
    if action.phase not in phases:
        raise IllegalTransition(
            f"Action {action_id} is {action.phase}; it must be {' or '.join(phases)} for this step."
        )
    return action


def _settle(
    tx: Tx, action: OutboxAction, phase: str, error: str, retry_at: str | None = None
) -> OutboxAction:
    error = mask(error)
    tx.execute(_SETTLE, (phase, error, retry_at, tx.now(), action.action_id))
    return structs.replace(
        action, phase=phase, last_error=error, next_retry_at=retry_at, lease_owner=None
    )


def _receipt(
    tx: Tx,
    action: OutboxAction,
    status: str,
    terminal: bool,
    summary: str,
    detail: Mapping[str, Any],
) -> dict[str, Any]:
    safe = mask_value(dict(detail))
    tx.execute(
        "INSERT INTO action_receipts VALUES (?,?,?,?,?,?,?,?,?)",
        (
            tx.ids.new("r"),
            action.action_id,
            action.key,
            action.attempts,
            status,
            int(terminal),
            mask(summary),
            canonical_json(safe),
            tx.now(),
        ),
    )
    return dict(safe)


def _journal(
    tx: Tx,
    row: OutboxAction,
    event: OfAction,
    result: str = "ok",
    error_code: str = "",
    latency_ms: int | None = None,
    at: str = "",
) -> OutboxAction:
    tx.journal(
        event,
        session_id=row.session_id,
        wave_id=row.wave_id,
        result=result,
        error_code=error_code,
        latency_ms=latency_ms,
        at=at,
    )
    return row


def _took_ms(tx: Tx, action_id: str) -> int | None:
    """Return the milliseconds since the action was dispatched, before its phase changes."""
    (since,) = tx.execute(
        "SELECT updated_at FROM outbox_actions WHERE action_id=?", (action_id,)
    ).fetchone()
    return milliseconds_between(since, tx.now())


def _head(action: OutboxAction) -> dict[str, str]:
    """Return the fields that all journal records of an action have."""
    return {"action_id": action.action_id, "type": action.action_type, "title": action.title}


def _read(row: tuple[Any, ...]) -> OutboxAction:
    values = list(row)
    values[8] = parse_json(values[8])
    return OutboxAction(*values)


def has_actions_of_no_wave(connection: sqlite3.Connection) -> bool:
    """Whether an action that no wave runs waits: over an agent's worktree, or a tool's adoption."""
    row = connection.execute(
        "SELECT 1 FROM outbox_actions WHERE phase NOT IN ('confirmed','failed_terminal')"
        " AND action_type IN ('take_worktree','adopt_tool','drop_worktree') LIMIT 1"
    ).fetchone()
    return row is not None
