"""What the user wants to have looked at before an action that they discuss: read by the next wave.

The user named it, so it is read without asking again, as what they name in a task is. See
``docs/reference/re-entry.md``.
"""

from __future__ import annotations

import sqlite3

from cockpit.loop.phases.propose_context_request import open_gateway, preview_record
from cockpit.loop.reentry.find_needs import find_need_of_discussion
from cockpit.loop.reentry.kept_actions import EVIDENCE, read_held_in
from cockpit.loop.wave_context import WaveContext
from cockpit.observe.context_request import ContextRequest
from cockpit.observe.scope_items import parse_item
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import context_requests, messages, proposals, waves

DECIDER = "person"


async def request_evidence(context: WaveContext) -> None:
    """Record an approved request for what the user named; the wave's jobs read it."""
    items = context.store.read_now(lambda connection: _list_items(connection, context))
    if not items:
        return
    request = ContextRequest(
        EVIDENCE,
        "What does the user want to have looked at?",
        tuple(parse_item(item) for item in items),
        rev=context.session.rev,
    )
    previews = [preview_record(each) for each in await open_gateway(context).preview(request)]

    def write(tx: Tx) -> None:
        context_requests.create(
            tx,
            request_id=_request_id(context),
            session_id=context.session.session_id,
            wave_id=context.wave.wave_id,
            purpose=request.purpose,
            question=request.question,
            items=previews,
            decided_by=DECIDER,
        )

    await context.store.write(write)


def _request_id(context: WaveContext) -> str:
    return f"q-{context.wave.wave_id}-evidence"


def _list_items(connection: sqlite3.Connection, context: WaveContext) -> tuple[str, ...]:
    """List what the user named about actions that the wave before kept for a discussion."""
    if context.wave.ordinal == 1:
        return ()
    session_id = context.session.session_id
    previous = waves.wave_id_of(session_id, context.wave.ordinal - 1)
    discussed = [
        each for each in read_held_in(connection, previous) if each.event.cause == "discussed"
    ]
    if not discussed or context_requests.find(connection, _request_id(context)) is not None:
        return ()
    confined = context.engine.ground.confined
    items: dict[str, None] = {}
    for each in discussed:
        proposal = proposals.find(connection, each.event.proposal_id)
        if proposal is None or proposal.decided_by != DECIDER:
            continue
        spoken = [
            message.text
            for message in messages.select_for_session(connection, session_id, role="person")
            if message.created_at >= (proposal.decided_at or "")
        ]
        words = "\n".join(dict.fromkeys((proposal.reason, *spoken)))
        items |= dict.fromkeys(find_need_of_discussion(words, confined).items)
    return tuple(items)
