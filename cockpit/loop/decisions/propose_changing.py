"""A command that said it changes nothing, and tried to: proposed again, as one that changes something.

In the reading sandbox a refused write is no result: a test that cannot write its file has not failed. So the
same command becomes a proposal of its own, and the call's result is what comes of that one. See
``docs/reference/actions.md``, commands that change nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cockpit.loop.wave_context import WaveContext
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import outbox
from cockpit.store.sessions.outbox import OutboxAction

CHANGING = "-changes"
"""The end of the idempotency key of the second proposal; the beginning is the call's."""


def find_refused_write(context: WaveContext, action: OutboxAction) -> str | None:
    """Return what the user is told of an ended command that the reading sandbox refused; None for others."""
    if action.phase != "failed_terminal" or not action.payload.get("reading"):
        return None
    receipts = context.store.read_now(
        lambda connection: outbox.select_receipts(connection, action.action_id)
    )
    refused = receipts[-1].detail.get("refused") if receipts else None
    if not refused:
        return None
    return f"It said that it changes nothing, and the reading sandbox refused: {refused}"


async def plan_changing(
    context: WaveContext, call: Mapping[str, Any], action: OutboxAction
) -> OutboxAction:
    """Plan the command anew, as one that changes something. Idempotent: a resumed wave finds it."""

    def plan(tx: Tx) -> OutboxAction:
        return outbox.plan(
            tx,
            wave_id=context.wave.wave_id,
            session_id=context.session.session_id,
            position=action.position,
            key=f"{call['key']}{CHANGING}",
            action_type=action.action_type,
            title=action.title,
            payload={**call["arguments"], "changes": True},
        )

    return await context.store.write(plan)
