"""``cockpit outbox``: list and show the actions that were planned, with their receipts."""

from __future__ import annotations

from typing import Any

import click

from cockpit.cli_options import AS_JSON, examples
from cockpit.commands.open_project import choose_session, read_store
from cockpit.commands.terminal import json_text, show, show_json, show_list
from cockpit.store.sessions import outbox as stored
from cockpit.store.sessions.outbox import PHASES, OutboxAction


@click.group(
    short_help="List and show actions and their receipts.",
    epilog=examples("cockpit outbox list --phase failed_terminal", "cockpit outbox show a-1a2b3c"),
)
def outbox() -> None:
    """List and show the actions that agents planned, with the receipt of every attempt.

    An action in phase failed_terminal failed permanently, or was refused before it ran.
    """


@outbox.command("list", epilog=examples("cockpit outbox list --session last --json"))
@click.option(
    "--phase",
    type=click.Choice(PHASES),
    metavar="PHASE",
    help="List only actions in this phase, for example failed_terminal.",
)
@click.option("--session", metavar="ID", help="List only actions of this session, an id or last.")
@click.option(
    "-n",
    "--lines",
    type=click.IntRange(1, 10_000),
    default=50,
    show_default=True,
    help="List this many actions.",
)
@AS_JSON
def list_actions(phase: str | None, session: str | None, lines: int, as_json: bool) -> None:
    """List actions, newest first."""
    rows: list[OutboxAction] = read_store(
        lambda connection: stored.select_recent(
            connection,
            lines,
            phase=phase,
            session_id=None if session is None else choose_session(connection, session),
        ),
        empty=[],
    )
    show_list(
        as_json,
        [_record(action) for action in rows],
        ("ACTION", "PHASE", "TYPE", "TRIES", "WAVE", "TITLE", "ERROR"),
        [
            (
                action.action_id,
                action.phase,
                action.action_type,
                f"{action.attempts}/{action.max_attempts}",
                action.wave_id,
                action.title[:60],
                action.last_error[:60].replace("\n", " "),
            )
            for action in rows
        ],
        "No actions yet." if phase is None else f"No action is {phase}.",
    )


@outbox.command("show", epilog=examples("cockpit outbox show a-1a2b3c"))
@click.argument("action_id")
@AS_JSON
def show_action(action_id: str, as_json: bool) -> None:
    """Show an action and its receipts."""
    action, receipts = read_store(
        lambda connection: (
            stored.load(connection, action_id),
            stored.select_receipts(connection, action_id),
        )
    )
    body = {
        **_record(action),
        "payload": dict(action.payload),
        "receipts": [
            {
                "receipt_id": receipt.receipt_id,
                "attempt": receipt.attempt,
                "status": receipt.status,
                "terminal": receipt.terminal,
                "summary": receipt.summary,
                "detail": dict(receipt.detail),
            }
            for receipt in receipts
        ],
    }
    if as_json:
        show_json(body)
        return
    for name, value in _record(action).items():
        show(f"{name}: {'–' if value in (None, '') else value}")
    show(f"payload: {json_text(body['payload'])}")
    for receipt in receipts:
        show(f"receipt {receipt.attempt}: {receipt.status}: {receipt.summary}")
    if not receipts:
        show("receipts: none; it did not run")


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
