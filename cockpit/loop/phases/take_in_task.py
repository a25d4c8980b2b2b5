"""What a session begins with: its task, the frame, and the context that nobody has to be asked for.

The task type declares some of it, the user names some in typed words, and cockpit grants itself the frame.
What other text of the task names is proposed. See ``docs/reference/loop.md``, context requests.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from cockpit.core.canonical_json import digest, parse_json
from cockpit.loop.decisions.approval_policy import approving_policy
from cockpit.loop.decisions.await_decision import DecidedProposal
from cockpit.loop.intake.baseline_facts import baseline, task_fact
from cockpit.loop.knowledge.gather_knowledge import is_by_librarian
from cockpit.loop.phases.fetch_by_rules import is_by_rule
from cockpit.loop.phases.propose_context_request import open_gateway, propose_before_packet
from cockpit.loop.phases.session_tools import tools_of_session
from cockpit.loop.phases.tool_results import pinned_text_fact
from cockpit.loop.tools.offer_tools import list_added
from cockpit.loop.wave_context import WaveContext
from cockpit.observe.context_request import ContextRequest as GatewayRequest
from cockpit.observe.frame.project_frame import FRAME, TestGround, read_frame
from cockpit.observe.scope_items import parse_item
from cockpit.observe.sources.stored_records import find_last_tests
from cockpit.store.context import facts
from cockpit.store.context.facts import Fact
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import context_requests, proposals, sessions
from cockpit.store.sessions.context_requests import (
    FRAME_PURPOSE,
    NAMED_PURPOSE,
    WRITTEN_PURPOSE,
    ContextRequest,
)
from cockpit.store.sessions.waves import Wave

NAMED = "person:named"
"""Who grants the files that the user named in words typed here."""
FRAMED = "cockpit:frame"
"""Who grants the frame of the first wave."""


def find_opening(connection: sqlite3.Connection, wave: Wave) -> dict[str, Any] | None:
    """Return what the wave's event says of the task, where the wave begins with it."""
    if not _opens_session(connection, wave):
        return None
    (payload,) = connection.execute(
        "SELECT payload_json FROM events WHERE event_id=?", (wave.event_id,)
    ).fetchone()
    body: dict[str, Any] = parse_json(payload)
    return body


def _opens_session(connection: sqlite3.Connection, wave: Wave) -> bool:
    """Tell whether the wave begins with the task: the first, or one that tries the task again."""
    if wave.ordinal == 1:
        return True
    row = connection.execute(
        "SELECT 1 FROM wave_runs JOIN wave_runs AS first USING (session_id, event_id)"
        " WHERE wave_runs.wave_id=? AND first.ordinal=1",
        (wave.wave_id,),
    ).fetchone()
    return row is not None


async def _read_frame(context: WaveContext) -> Fact | None:
    """Return the frame of the project as it is now; None where the user does not want one.

    An external agent knows its checkout, and no model of cockpit's gets a packet for it.
    """
    engine, session = context.engine, context.session
    if not engine.settings.frame or session.task_type == sessions.EXTERNAL_AGENT:
        return None
    tests = TestGround(
        engine.place.home,
        engine.ground.environment,
        engine.settings.test_command,
        context.store.read_now(find_last_tests),
    )
    return await read_frame(open_gateway(context).ground, tests, context.wave.pinned_now[:10])


async def take_in_task(context: WaveContext, opening: Mapping[str, Any]) -> None:
    """Store the first wave's facts: identity, capabilities, the task as the user put it, and the frame."""
    frame = await _read_frame(context)
    confined, user_dir = context.engine.ground.confined, context.engine.settings.user_dir
    # A review's opening contains the object of the task; that of other tasks is the user's text.
    is_review = bool({"pr", "range"} & set(context.session.target))
    band = "situational" if is_review else "objectives"
    opening_facts = [
        *baseline(confined, user_dir, (*tools_of_session(context), *list_added(context))),
        task_fact(opening["text"], band=band),
    ]
    included = {str(item): int(tokens) for item, tokens in opening["included"].items()}
    named = await _measure(context, opening.get("named", ()))
    apart = {*included, *named}
    unread = await _measure(context, [i for i in opening["scope_items"] if i not in apart])
    purpose = f"{context.session.task_type}: the object of the request"
    by_type = f"task_type:{context.session.task_type}"

    def write(tx: Tx) -> None:
        record_facts(tx, context, opening_facts, job="baseline")
        if frame is not None:
            record_facts(tx, context, [frame], job=FRAME)
            tokens = {FRAME: frame.full.tokens}
            request = _grant(tx, context, FRAME, tokens, FRAME_PURPOSE, by=FRAMED)
            _record_present(tx, context, request, 1)
        if included:
            note = "in the first message"
            request = _grant(tx, context, "", included, purpose, by=by_type, note=note)
            _record_present(tx, context, request, 0)
        if unread:
            _grant(tx, context, "declared", unread, purpose, by=by_type)
        if named:
            _grant(tx, context, "named", named, NAMED_PURPOSE, by=NAMED, note="named by you")

    await context.store.write(write)


async def propose_written(context: WaveContext, opening: Mapping[str, Any]) -> None:
    """Propose the files that the task's text names and that its user did not: pasted text, or a program's.

    Where nobody waits at the screen, and no policy decides, the agent asks for what it needs of them.
    """
    session, items = context.session, opening.get("proposed", ())
    is_decided = session.interactive or approving_policy(session.policy, "context")
    if not items or not is_decided or context.wave.ordinal > 1:
        return
    request = GatewayRequest(
        WRITTEN_PURPOSE,
        "Are these files what it is about?",
        tuple(map(parse_item, items)),
        "Without them the agent asks for what it needs.",
        rev=session.rev,
    )
    key = f"k-{digest([context.wave.wave_id, WRITTEN_PURPOSE])}"
    await propose_before_packet(context, key, request)


async def _measure(context: WaveContext, items: Sequence[str]) -> Mapping[str, int | None]:
    """Return the items with their estimated tokens; None where only reading tells."""
    if not items:
        return {}
    scope = tuple(map(parse_item, items))
    request = GatewayRequest("start a task", "How long is this?", scope, rev=context.session.rev)
    previews = await open_gateway(context).preview(request)
    return {
        str(item): None if preview.refused else preview.tokens
        for item, preview in zip(items, previews, strict=True)
    }


def _record_present(tx: Tx, context: WaveContext, request: ContextRequest, count: int) -> None:
    """Record that the wave has the items of a request already, as ``count`` facts each."""
    if request.status == "approved":
        outcomes = [
            {
                "item": item["item"],
                "facts": count,
                "new": count,
                "tokens": item["tokens"],
                "error": "",
            }
            for item in request.items
        ]
        context_requests.record_fetched(
            tx, request.request_id, wave_id=context.wave.wave_id, outcomes=outcomes
        )


def _grant(
    tx: Tx,
    context: WaveContext,
    name: str,
    items: Mapping[str, int | None],
    purpose: str,
    *,
    by: str,
    note: str = "",
) -> ContextRequest:
    """Record context with its tokens (None: unknown) as a request that its origin, ``by``, approves.

    ``name`` tells a wave's requests apart.
    """
    return context_requests.create(
        tx,
        request_id="-".join(filter(None, ("q", context.wave.wave_id, name))),
        session_id=context.session.session_id,
        wave_id=context.wave.wave_id,
        purpose=purpose,
        question="What is this task about?",
        items=[
            {
                "item": item,
                "level": "full",
                "tokens": tokens,
                "band": "situational",
                "refused": "",
                "note": note,
            }
            for item, tokens in items.items()
        ],
        decided_by=by,
    )


def tell_of_missing(tx: Tx, context: WaveContext) -> list[Fact]:
    """Return cockpit's notices to the agent about context of the task that it does not get."""
    return [*_unread_context(tx, context), *_unapproved_context(tx, context)]


def _unread_context(tx: Tx, context: WaveContext) -> list[Fact]:
    """Return cockpit's notice to the agent about declared context that could not be read after all."""
    requests = context_requests.select_by_status(
        tx.connection, context.session.session_id, "fetched"
    )
    errors = [
        f"- {outcome['item']}: {outcome['error']}"
        for request in requests
        if request.wave_id == context.wave.wave_id
        and request.proposal_id is None
        and not is_by_rule(request)
        and not is_by_librarian(request)
        for outcome in request.outcomes
        if outcome.get("error")
    ]
    if not errors:
        return []
    text = "Part of what this task starts from could not be read:\n" + "\n".join(errors)
    return [pinned_text_fact("notice", "notice:context", text)]


def _unapproved_context(tx: Tx, context: WaveContext) -> list[Fact]:
    """Return cockpit's notice to the agent that the user did not approve what the task's text names."""
    declined = [
        DecidedProposal(proposals.load_edited(tx.connection, request.proposal_id))
        for status in ("discussed", "rejected")
        for request in context_requests.select_by_status(
            tx.connection, context.session.session_id, status
        )
        if request.proposal_id is not None and request.purpose == WRITTEN_PURPOSE
    ]
    text = "cockpit proposed to read the files that the task's text names. "
    return [pinned_text_fact("notice", "notice:named", text + each.message) for each in declined]


def record_facts(
    tx: Tx,
    context: WaveContext,
    new_facts: Sequence[Fact],
    *,
    job: str,
) -> int:
    """Store facts of this wave; returns how many are new. ``job`` names what they were read for."""
    return facts.record(
        tx,
        session_id=context.session.session_id,
        wave_id=context.wave.wave_id,
        ordinal=context.wave.ordinal,
        pinned_now=context.wave.pinned_now,
        facts=new_facts,
        job=job,
    )
