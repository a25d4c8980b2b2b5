"""Proposals: what waits for a decision, decided exactly once.

A decision is a compare-and-set on ``pending`` and names the digest of what was shown. Specified in
``docs/reference/loop.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from msgspec import Struct

from cockpit.core.canonical_json import canonical_json, digest, parse_json
from cockpit.core.clock import Clock, format_time, milliseconds_between
from cockpit.core.errors import AlreadyDecided, Altered, NotFound, Stale
from cockpit.core.secrets import mask, mask_value
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.proposals import ProposalCreated, ProposalDecided

UNEDITABLE_ACTIONS = frozenset({"take_worktree", "drop_worktree", "adopt_tool", "settle"})
"""Types of actions without a text that the user could edit."""
EDITED = "edited by the person"
"""The stored reason of a proposal that the user replaced by an edited revision."""
EDITED_BY_YOU = "edited by you"
"""The same for the reader."""


class Proposal(Struct, frozen=True):
    """One row of ``proposals``."""

    proposal_id: str
    kind: str
    session_id: str
    """Empty for a profile change that was proposed outside any session."""
    wave_id: str
    task_id: str | None
    revises: str | None
    """The proposal that this one replaces, or None."""
    title: str
    body: Mapping[str, Any]
    shown_digest: str
    """Digest of ``body``; a decision names it."""
    risk: str
    status: str
    narrowed: tuple[str, ...] | None
    """The items of a context request that were kept, or None."""
    decided_by: str | None
    decided_at: str | None
    reason: str
    expires_at: str | None
    created_at: str


_SELECT = (
    "SELECT proposal_id, kind, coalesce(session_id, ''), wave_id, task_id, revises, title, body_json,"
    " shown_digest, risk, status, narrowed_json, decided_by, decided_at, reason, expires_at, created_at"
    " FROM proposals"
)


def create(
    tx: Tx,
    *,
    proposal_id: str,
    kind: str,
    session_id: str,
    wave_id: str,
    title: str,
    body: Mapping[str, Any],
    risk: str,
    revises: str | None = None,
    task_id: str | None = None,
    deadline_s: float | None = None,
    actor: str = "agent",
) -> Proposal:
    """Store a pending proposal and journal it. Idempotent by ``proposal_id``."""
    row = tx.execute(f"{_SELECT} WHERE proposal_id=?", (proposal_id,)).fetchone()
    if row is not None:
        return _read(row)
    body, title = mask_value(dict(body)), mask(title)
    expires = (
        None if deadline_s is None else format_time(tx.clock.now() + timedelta(seconds=deadline_s))
    )
    shown = digest(body)
    tx.execute(
        "INSERT INTO proposals(proposal_id, kind, session_id, wave_id, task_id, revises, title,"
        " body_json, shown_digest, risk, status, expires_at, created_at)"
        " VALUES (?,?,?,?,?,?,?,?,?,?,'pending',?,?)",
        (
            proposal_id,
            kind,
            session_id or None,
            wave_id,
            task_id,
            revises,
            title,
            canonical_json(body),
            shown,
            risk,
            expires,
            tx.now(),
        ),
    )
    tx.journal(
        ProposalCreated(
            proposal_id=proposal_id,
            kind=kind,
            title=title,
            risk=risk,
            revises=revises or "",
            expires_at=expires,
            shown_digest=shown,
            body=body,
            task_id=task_id or "",
        ),
        actor=actor,
        session_id=session_id,
        wave_id=wave_id,
    )
    return load(tx.connection, proposal_id)


def decide(
    tx: Tx,
    proposal_id: str,
    verdict: str,
    *,
    by: str,
    shown_digest: str | None = None,
    narrowed: Sequence[str] | None = None,
    reason: str = "",
) -> Proposal:
    """Decide a pending proposal, once, and journal the decision.

    ``by`` is the authoritative name of who decides (``person``, ``policy:all``, …). ``narrowed``
    names the items to keep when a context request is approved. Raises :class:`AlreadyDecided`,
    :class:`Stale` (another digest was shown, or the deadline passed), :class:`Altered` (what is approved is
    not what was proposed) and :class:`NotFound`; then nothing changed.
    """
    proposal = load(tx.connection, proposal_id)
    if proposal.status != "pending":
        if is_withdrawn(proposal):
            raise AlreadyDecided(f"Proposal {proposal_id} was withdrawn. {proposal.reason}")
        who = f" by {proposal.decided_by}" if proposal.decided_by else ""
        raise AlreadyDecided(f"Proposal {proposal_id} was already {proposal.status}{who}.")
    if shown_digest is not None and shown_digest != proposal.shown_digest:
        raise Stale(
            f"Proposal {proposal_id} differs from what was shown. Show it again and decide then."
        )
    late = proposal.expires_at is not None and proposal.expires_at <= tx.now()
    if late and verdict != "expired":
        raise Stale(f"The deadline of proposal {proposal_id} has passed; nothing was decided.")
    if verdict in ("approved", "discussed"):
        require_as_shown(proposal)
    items = _narrowed(proposal, verdict, narrowed)
    reason = mask(reason)
    changed = tx.execute(
        "UPDATE proposals SET status=?, decided_by=?, decided_at=?, reason=?, narrowed_json=?"
        " WHERE proposal_id=? AND status='pending'",
        (
            verdict,
            by,
            tx.now(),
            reason,
            None if items is None else canonical_json(list(items)),
            proposal_id,
        ),
    )
    if changed.rowcount != 1:
        raise AlreadyDecided(f"Proposal {proposal_id} was already decided.")
    tx.journal(
        ProposalDecided(
            proposal_id=proposal_id,
            kind=proposal.kind,
            title=proposal.title,
            status=verdict,
            decided_by=by,
            shown_digest=proposal.shown_digest,
            reason=reason,
            narrowed=tuple(items or ()),
        ),
        actor=by,
        session_id=proposal.session_id,
        wave_id=proposal.wave_id,
        result="ok" if verdict == "approved" else "refused",
        latency_ms=milliseconds_between(proposal.created_at, tx.now()),
    )
    return load(tx.connection, proposal_id)


def is_withdrawn(proposal: Proposal) -> bool:
    """Whether it ended without a decision, and not by its deadline."""
    return proposal.status == "expired" and proposal.decided_by != "deadline"


def shown_status(proposal: Proposal) -> str:
    """Return the status in the user's words.

    That is ``withdrawn`` for what ended without them before its deadline, and ``edited`` for what they
    replaced by a version of their own.
    """
    if proposal.status == "discussed" and proposal.reason == EDITED:
        return "edited"
    return "withdrawn" if is_withdrawn(proposal) else proposal.status


def shown_reason(proposal: Proposal) -> str:
    """Return why a proposal ended, for the reader; empty where nobody wrote a reason."""
    return EDITED_BY_YOU if proposal.reason == EDITED else proposal.reason


def require_as_shown(proposal: Proposal) -> None:
    """Raise :class:`Altered` unless the body is the one whose digest was shown."""
    if digest(proposal.body) != proposal.shown_digest:
        raise Altered(
            f"Proposal {proposal.proposal_id} was changed in the store after it was proposed. Nothing was"
            " decided; reject it, and have it proposed again."
        )


def load_approved(connection: sqlite3.Connection, proposal_id: str) -> Proposal:
    """Read a proposal whose approval is to take effect.

    Raises :class:`NotFound`, and :class:`Altered` unless it was approved with the body that it has.
    """
    proposal = load(connection, proposal_id)
    if proposal.status != "approved":
        raise Altered(
            f"Proposal {proposal_id} is {proposal.status}, so it is not done. Have it proposed again."
        )
    require_as_shown(proposal)
    return proposal


def set_deadline(tx: Tx, session_id: str, deadline_s: float) -> None:
    """Set a deadline for the session's pending proposals that have none."""
    tx.execute(
        "UPDATE proposals SET expires_at=? WHERE session_id=? AND status='pending'"
        " AND expires_at IS NULL",
        (format_time(tx.clock.now() + timedelta(seconds=deadline_s)), session_id),
    )


_DUE = "FROM proposals WHERE status='pending' AND expires_at<=?"


def has_due(connection: sqlite3.Connection, clock: Clock) -> bool:
    """Whether the deadline of a pending proposal has passed."""
    now = format_time(clock.now())
    return connection.execute(f"SELECT 1 {_DUE} LIMIT 1", (now,)).fetchone() is not None


def expire_due(tx: Tx) -> list[Proposal]:
    """Expire the pending proposals whose deadline has passed, whether a process waits for them or not."""
    due = tx.execute(f"SELECT proposal_id {_DUE}", (tx.now(),)).fetchall()
    return [decide(tx, identity, "expired", by="deadline") for (identity,) in due]


def load(connection: sqlite3.Connection, proposal_id: str) -> Proposal:
    """Read the proposal of that id. Raises :class:`NotFound`."""
    proposal = find(connection, proposal_id)
    if proposal is None:
        raise NotFound(f"There is no proposal {proposal_id}; `cockpit proposals --all` lists them.")
    return proposal


def find(connection: sqlite3.Connection, proposal_id: str) -> Proposal | None:
    """Read the proposal of that id, or None."""
    row = connection.execute(f"{_SELECT} WHERE proposal_id=?", (proposal_id,)).fetchone()
    return None if row is None else _read(row)


def select_pending(connection: sqlite3.Connection, limit: int = 200) -> list[Proposal]:
    """Read the pending proposals of every session, oldest first."""
    rows = connection.execute(
        f"{_SELECT} WHERE status='pending' ORDER BY created_at, rowid LIMIT ?", (limit,)
    )
    return [_read(row) for row in rows]


def select_for_session(connection: sqlite3.Connection, session_id: str) -> list[Proposal]:
    """Read a session's proposals, oldest first."""
    rows = connection.execute(
        f"{_SELECT} WHERE session_id=? ORDER BY created_at, rowid", (session_id,)
    )
    return [_read(row) for row in rows]


def load_edited(connection: sqlite3.Connection, proposal_id: str) -> Proposal:
    """Read the proposal, or the newest of the user's edits of it. Raises ``NotFound``."""
    proposal = load(connection, proposal_id)
    while proposal.status == "discussed" and proposal.reason == EDITED:
        row = connection.execute(
            "SELECT proposal_id FROM proposals WHERE revises=? ORDER BY rowid DESC LIMIT 1",
            (proposal.proposal_id,),
        ).fetchone()
        if row is None:
            return proposal
        proposal = load(connection, str(row[0]))
    return proposal


def find_latest_of_kind(
    connection: sqlite3.Connection, session_id: str, kind: str, *, but: str, not_by: str = ""
) -> Proposal | None:
    """Read the session's newest proposal of ``kind`` other than ``but``, or None.

    What ``not_by`` decided does not count.
    """
    row = connection.execute(
        f"{_SELECT} WHERE session_id=? AND kind=? AND proposal_id<>? AND decided_by IS NOT ?"
        " ORDER BY created_at DESC, rowid DESC LIMIT 1",
        (session_id, kind, but, not_by),
    ).fetchone()
    return _read(row) if row else None


def select_for_action(connection: sqlite3.Connection, wave_id: str, key: str) -> list[Proposal]:
    """Read a wave's proposals for one action (by idempotency key), oldest first."""
    rows = connection.execute(
        f"{_SELECT} WHERE session_id=(SELECT session_id FROM wave_runs WHERE wave_id=?1)"  # noqa: S608 - fixed columns
        " AND wave_id=?1 AND json_extract(body_json, '$.key')=?2 ORDER BY created_at, rowid",
        (wave_id, key),
    )
    return [_read(row) for row in rows]


def select_recent(connection: sqlite3.Connection, limit: int = 200) -> list[Proposal]:
    """Read proposals of every status, newest first."""
    rows = connection.execute(f"{_SELECT} ORDER BY created_at DESC, rowid DESC LIMIT ?", (limit,))
    return [_read(row) for row in rows]


def _narrowed(
    proposal: Proposal, verdict: str, narrowed: Sequence[str] | None
) -> tuple[str, ...] | None:
    if narrowed is None:
        return None
    if verdict != "approved" or proposal.kind != "context":
        raise Stale("Only the approval of a context request can be narrowed.")
    offered = [item["item"] for item in proposal.body.get("items", ())]
    unknown = [item for item in narrowed if item not in offered]
    if unknown:
        raise Stale(
            f"{unknown[0]!r} is not in proposal {proposal.proposal_id}. Narrowing can only remove items; "
            f"it offers: {', '.join(offered)}."
        )
    if not narrowed:
        raise Stale("No item of the request is left. Reject or discuss it instead.")
    return tuple(item for item in offered if item in set(narrowed))


def _read(row: tuple[Any, ...]) -> Proposal:
    values = list(row)
    values[7] = parse_json(values[7])
    values[11] = None if values[11] is None else tuple(parse_json(values[11]))
    return Proposal(*values)
