"""``cockpit debug outbox``: list and show the actions that were planned, with their receipts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click
from msgspec import Struct

from cockpit.commands.collection import Collection, limit_option
from cockpit.commands.open_project import choose_session, read_store
from cockpit.commands.terminal import json_text
from cockpit.store.sessions import outbox as stored
from cockpit.store.sessions.outbox import PHASES, OutboxAction, Receipt


class PlannedAction(Struct, frozen=True):
    """An action, and its receipts where it is shown alone."""

    action: OutboxAction
    receipts: Sequence[Receipt] = ()


def _read(phase: str | None, session: str | None, limit: int) -> Sequence[PlannedAction]:
    rows: list[OutboxAction] = read_store(
        lambda connection: stored.select_recent(
            connection,
            limit,
            phase=phase,
            session_id=None if session is None else choose_session(connection, session),
        ),
        empty=[],
    )
    return [PlannedAction(action) for action in rows]


def _find(name: str) -> PlannedAction:
    return read_store(
        lambda connection: PlannedAction(
            stored.load(connection, name), stored.select_receipts(connection, name)
        )
    )


def _document(row: PlannedAction) -> dict[str, Any]:
    receipts = [
        {
            "receipt_id": receipt.receipt_id,
            "attempt": receipt.attempt,
            "status": receipt.status,
            "terminal": receipt.terminal,
            "summary": receipt.summary,
            "detail": dict(receipt.detail),
        }
        for receipt in row.receipts
    ]
    return {**_record(row.action), "payload": dict(row.action.payload), "receipts": receipts}


def _record(action: OutboxAction) -> dict[str, Any]:
    return {
        "action_id": action.action_id,
        "phase": action.phase,
        "action_type": action.action_type,
        "title": action.title,
        "session_id": action.session_id,
        "wave_id": action.wave_id,
        "proposal_id": action.proposal_id,
        "idempotency_key": action.key,
        "attempts": action.attempts,
        "max_attempts": action.max_attempts,
        "next_retry_at": action.next_retry_at,
        "lease_owner": action.lease_owner,
        "last_error": action.last_error,
    }


def _describe(row: PlannedAction) -> str:
    receipts = [
        f"receipt {receipt.attempt}: {receipt.status}: {receipt.summary}"
        for receipt in row.receipts
    ]
    fields = {**_record(row.action), "payload": json_text(dict(row.action.payload))}
    lines = [f"{name}: {value}" for name, value in fields.items() if value not in (None, "")]
    return "\n".join([*lines, *(receipts or ["receipts: none; it did not run"])])


outbox = Collection(
    "outbox",
    short_help="List and show actions and their receipts.",
    help="""List and show the actions that agents planned, newest first, with the receipt of every attempt.

    An action in phase failed_terminal failed permanently, or was refused before it ran.
    """,
    examples=("cockpit debug outbox --phase failed_terminal", "cockpit debug outbox a-1a2b3c"),
    row="ACTION",
    columns={
        "ACTION": lambda row: row.action.action_id,
        "PHASE": lambda row: row.action.phase,
        "TYPE": lambda row: row.action.action_type,
        "TRIES": lambda row: f"{row.action.attempts}/{row.action.max_attempts}",
        "WAVE": lambda row: row.action.wave_id,
        "TITLE": lambda row: row.action.title[:60],
        "ERROR": lambda row: row.action.last_error[:60].replace("\n", " "),
    },
    read=_read,
    find=_find,
    none=lambda phase, **_: "No actions yet." if phase is None else f"No action is {phase}.",
    describe=_describe,
    body=lambda row: _record(row.action),
    document=_document,
    filters=[
        click.option(
            "--phase",
            type=click.Choice(PHASES),
            metavar="PHASE",
            help="List only actions in this phase, for example failed_terminal.",
        ),
        click.option(
            "--session", metavar="ID", help="List only actions of this session, an id or last."
        ),
        limit_option(50),
    ],
)
