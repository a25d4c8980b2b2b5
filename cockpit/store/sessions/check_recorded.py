"""What is acted on is what the journal recorded: a row that was edited since is refused.

Proposals, the outbox, context requests and a session's policy lie in tables that any program of the user
can write. The journal recorded each of them when it was made, and each decision. So whoever decides, runs or
reads on the word of such a row compares it with the journal's row first, and that row with its neighbours
in the chain. Specified in ``docs/reference/journal.md``, rows that take effect.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from msgspec import UNSET

from cockpit.core.canonical_json import digest
from cockpit.core.errors import Altered
from cockpit.store.journal import journal
from cockpit.store.journal.details.proposals import (
    ActionQueued,
    ProposalApproved,
    ProposalCreated,
)
from cockpit.store.journal.details.sessions import SessionChanged, SessionCreated
from cockpit.store.journal.details.waves import ContextRequested
from cockpit.store.journal.event_types import Action
from cockpit.store.journal.journal import Row
from cockpit.store.journal.verify_chain import is_linked


class ProposalRow(Protocol):
    """What is compared of a :class:`~cockpit.store.sessions.proposals.Proposal`."""

    @property
    def proposal_id(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def session_id(self) -> str: ...
    @property
    def wave_id(self) -> str: ...
    @property
    def task_id(self) -> str | None: ...
    @property
    def revises(self) -> str | None: ...
    @property
    def title(self) -> str: ...
    @property
    def body(self) -> Mapping[str, Any]: ...
    @property
    def shown_digest(self) -> str: ...
    @property
    def risk(self) -> str: ...
    @property
    def narrowed(self) -> tuple[str, ...] | None: ...
    @property
    def decided_by(self) -> str | None: ...


class ActionRow(Protocol):
    """What is compared of an :class:`~cockpit.store.sessions.outbox.OutboxAction`."""

    @property
    def action_id(self) -> str: ...
    @property
    def wave_id(self) -> str: ...
    @property
    def proposal_id(self) -> str | None: ...
    @property
    def key(self) -> str: ...
    @property
    def action_type(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def payload(self) -> Mapping[str, Any]: ...
    @property
    def phase(self) -> str: ...


class RequestRow(Protocol):
    """What is compared of a :class:`~cockpit.store.sessions.context_requests.ContextRequest`."""

    @property
    def request_id(self) -> str: ...
    @property
    def session_id(self) -> str: ...
    @property
    def wave_id(self) -> str: ...
    @property
    def proposal_id(self) -> str | None: ...
    @property
    def approved(self) -> tuple[str, ...]: ...


_PHASES = {
    Action.ACTION_QUEUED: "queued",
    Action.ACTION_DISPATCHED: "dispatched",
    Action.ACTION_CONFIRMED: "confirmed",
    Action.ACTION_RETRIED: "failed_retryable",
    Action.ACTION_FAILED: "failed_terminal",
    Action.ACTION_UNCERTAIN: "uncertain",
}
"""The phase of an action after each event of it."""

_ADVICE = "`cockpit debug journal verify` lists what was changed in the store."


def require_as_shown(connection: sqlite3.Connection, proposal: ProposalRow) -> None:
    """Raise :class:`Altered` unless ``proposal`` is in every word the one that was proposed."""
    row = _first(connection, proposal.wave_id, Action.PROPOSAL_CREATED, proposal.proposal_id)
    if row is None:
        raise Altered(
            f"The journal has no record that {proposal.proposal_id} was proposed. Nothing was decided;"
            f" have it proposed again. {_ADVICE}"
        )
    record = row.read(ProposalCreated)
    recorded = (
        *(record.kind, record.title, record.risk, record.revises, record.task_id),
        *(row.session_id, record.shown_digest, record.shown_digest),
    )
    stored = (
        *(proposal.kind, proposal.title, proposal.risk, proposal.revises or ""),
        *(proposal.task_id or "", proposal.session_id, proposal.shown_digest),
        digest(proposal.body),
    )
    if stored != recorded or not is_linked(connection, row.seq):
        raise Altered(
            f"Proposal {proposal.proposal_id} was changed in the store after it was proposed. Nothing was"
            f" decided; reject it, and have it proposed again. {_ADVICE}"
        )


def require_approved(connection: sqlite3.Connection, proposal: ProposalRow) -> None:
    """Raise :class:`Altered` unless ``proposal`` was approved, as it is now, through cockpit."""
    require_as_shown(connection, proposal)
    row = _first(connection, proposal.wave_id, Action.PROPOSAL_APPROVED, proposal.proposal_id)
    if row is not None:
        record = row.read(ProposalApproved)
        recorded = (record.decided_by, record.shown_digest, record.narrowed)
        stored = (proposal.decided_by, proposal.shown_digest, proposal.narrowed or ())
        if stored == recorded and is_linked(connection, row.seq):
            return
    raise Altered(
        f"The store says that {proposal.proposal_id} was approved, and the journal does not. It did not"
        f" happen; have it proposed again. {_ADVICE}"
    )


def require_queued(
    connection: sqlite3.Connection, action: ActionRow, proposal: ProposalRow | None
) -> None:
    """Raise :class:`Altered` unless ``action`` is in the phase, and has the payload, that was recorded.

    ``proposal`` is the one that it was approved by, if it has one.
    """
    rows = _rows_of_action(connection, action)
    newest = rows[-1] if rows else None
    queued = next((row for row in reversed(rows) if row.action == Action.ACTION_QUEUED), None)
    is_sound = False
    if newest is not None and queued is not None:
        record = queued.read(ActionQueued)
        is_sound = (
            _PHASES[Action(newest.action)] == action.phase
            and (record.key, record.type, record.proposal_id)
            == (action.key, action.action_type, action.proposal_id or "")
            # Rows of earlier versions have no digest: there the proposal's payload counts alone.
            and record.payload_digest in (digest(action.payload), UNSET)
            and (proposal is not None or record.payload_digest is not UNSET)
            and is_linked(connection, newest.seq)
            and is_linked(connection, queued.seq)
        )
    if is_sound and proposal is not None:
        require_approved(connection, proposal)
        body = proposal.body
        is_sound = (
            body.get("payload") == action.payload
            and body.get("key") == action.key
            and body.get("type") == action.action_type
        )
    if not is_sound:
        raise Altered(
            f"Action {action.action_id} ({action.title}) is not as it was queued: the outbox was changed in"
            f" the store. It was not run. {_ADVICE}"
        )


def require_granted(
    connection: sqlite3.Connection, request: RequestRow, proposal: ProposalRow | None
) -> None:
    """Raise :class:`Altered` unless the approved items of ``request`` were asked for and granted.

    ``proposal`` is the one that asked; None for a request that needs none.
    """
    row = _first(
        connection, request.wave_id, Action.CONTEXT_REQUESTED, request.request_id, "request_id"
    )
    is_sound = False
    if row is not None and is_linked(connection, row.seq):
        record = row.read(ContextRequested)
        offered = {item.item for item in record.items if not item.refused}
        is_sound = (
            row.session_id == request.session_id
            and record.proposal_id == (request.proposal_id or "")
            and record.auto == (proposal is None)
            and set(request.approved) <= offered
        )
    if is_sound and proposal is not None:
        require_approved(connection, proposal)
        shown = {item["item"] for item in proposal.body["items"] if not item["refused"]}
        kept = shown if proposal.narrowed is None else shown & set(proposal.narrowed)
        is_sound = proposal.session_id == request.session_id and set(request.approved) <= kept
    if not is_sound:
        raise Altered(
            f"The context request {request.request_id} is not as it was granted: it was changed in the"
            f" store. Nothing was read for it. {_ADVICE}"
        )


def require_policy(connection: sqlite3.Connection, session_id: str, policy: str) -> None:
    """Raise :class:`Altered` unless ``policy`` is what the session was given, before it approves anything."""
    row = connection.execute(
        f"{journal.SELECT} WHERE session_id=? AND +action IN (?,?)"
        " AND json_extract(detail_json, '$.policy') IS NOT NULL ORDER BY seq DESC LIMIT 1",
        (session_id, str(Action.SESSION_CREATED), str(Action.SESSION_CHANGED)),
    ).fetchone()
    recorded = None if row is None else journal.read_row(row)
    given: object = None
    if recorded is not None and recorded.action == Action.SESSION_CREATED:
        given = recorded.read(SessionCreated).policy
    elif recorded is not None:
        given = recorded.read(SessionChanged).policy
    if recorded is None or given != policy or not is_linked(connection, recorded.seq):
        raise Altered(
            f"The approval policy of session {session_id} was changed in the store: it is {policy!r} there,"
            f" and the journal has another. It approved nothing. {_ADVICE}"
        )


def _first(
    connection: sqlite3.Connection,
    wave_id: str,
    action: Action,
    identity: str,
    name: str = "proposal_id",
) -> Row | None:
    """Return the first row of an event type about a proposal (or request): later ones count for nothing."""
    values = connection.execute(
        f"{journal.SELECT} WHERE wave_id=? AND action=? AND json_extract(detail_json, '$.{name}')=?"
        " ORDER BY seq LIMIT 1",
        (wave_id, str(action), identity),
    ).fetchone()
    return None if values is None else journal.read_row(values)


def _rows_of_action(connection: sqlite3.Connection, action: ActionRow) -> list[Row]:
    """Return the events that set an action's phase, in order."""
    marks = ",".join("?" * len(_PHASES))
    rows: Iterable[tuple[Any, ...]] = connection.execute(
        f"{journal.SELECT} WHERE wave_id=? AND action IN ({marks})"
        " AND json_extract(detail_json, '$.action_id')=? ORDER BY seq",
        (action.wave_id, *map(str, _PHASES), action.action_id),
    )
    return [journal.read_row(values) for values in rows]
