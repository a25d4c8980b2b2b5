"""Keep an action that lacks context, and ask for the context in its name.

The action ends without an effect; its call, its proposals and the reason stay. What it lacks is requested
through the gateway, with approval as usual, and read by the next wave, whose packet is compiled with it.
Then the agent proposes the action again, as it was or changed. See ``docs/reference/re-entry.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import structs

from cockpit.loop.phases.propose_context_request import prepare_request, store_request
from cockpit.loop.phases.reading_calls import READS
from cockpit.loop.reentry.find_needs import Need
from cockpit.loop.reentry.kept_actions import MOST_RETURNS, read_continued, read_held_in
from cockpit.loop.wave_context import WaveContext
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.reentry import ActionKept
from cockpit.store.sessions import context_requests, outbox, proposals, sessions
from cockpit.store.sessions.outbox import OutboxAction

LONGEST_WHY = 300
"""Characters of the reason, which is part of the next wave's line."""
_FOR_FREE = ("stopped", "discussed")
"""Causes that do not count: nothing of the action was tried."""


def may_keep(context: WaveContext) -> bool:
    """Whether the session keeps actions: an external agent asks for its context itself."""
    return context.session.task_type != sessions.EXTERNAL_AGENT


async def keep_action(
    context: WaveContext, call: Mapping[str, Any], action: OutboxAction, need: Need, message: str
) -> bool:
    """Keep an action that did not happen; returns whether it is kept.

    It is not where the context has all that it lacks, where nothing of it can be read or the user did not
    want it read, and where its line went back too often: then the action fails as it would without
    re-entry. ``message`` ends one that is still planned. A crash in between asks once all the same.
    """
    if not may_keep(context):
        return False
    if context.store.read_now(lambda connection: _is_kept(connection, action)):
        return True
    line = read_continued(call)
    before = line.times if line else 0
    counts = need.cause not in _FOR_FREE
    if counts and before >= MOST_RETURNS:
        return False
    session_id = context.session.session_id
    if need.items and need.cause != "discussed":
        if context.store.read_now(
            lambda connection: context_requests.was_rejected(connection, session_id, need.items)
        ):
            return False
        request = _request(call, need)
        prepared = await prepare_request(context, request)
        if prepared.refused is not None:
            return False
        await store_request(context, request, prepared)
    held = ActionKept(
        status="held",
        action_id=action.action_id,
        type=action.action_type,
        title=action.title,
        call=str(call["call_id"]).removeprefix("call-").replace("-", "."),
        cause=need.cause,
        why=" ".join(need.why.split())[:LONGEST_WHY],
        items=need.items,
        times=before + counts,
        root=line.root if line else action.action_id,
        proposal_id="",
    )

    def write(tx: Tx) -> None:
        current = outbox.load(tx.connection, action.action_id)
        if current.phase == "planned":
            outbox.drop(tx, action.action_id, message)
        shown = proposals.select_for_action(tx.connection, action.wave_id, action.key)
        proposal_id = shown[-1].proposal_id if shown else (line.proposal_id if line else "")
        context.journal(tx, structs.replace(held, proposal_id=proposal_id))

    await context.store.write(write)
    return True


def _is_kept(connection: Any, action: OutboxAction) -> bool:
    held = read_held_in(connection, action.wave_id)
    return any(each.action_id == action.action_id for each in held)


def _request(call: Mapping[str, Any], need: Need) -> dict[str, Any]:
    """Return the call that asks for the context in the action's name."""
    reads = {
        "purpose": f"{call['title']}: {need.why}.",
        "question": "What does it have to take into account?",
        "scope": list(need.items),
        "escalation": "Without it the action is not proposed again as it is.",
    }
    return {**call, READS: reads}
