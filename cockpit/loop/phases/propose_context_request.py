"""A context request becomes a proposal that shows what it would cost; nothing is read before its decision.

See ``docs/reference/loop.md``, context requests.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from cockpit.act.guards.action_guard import GuardState, Refusal, first_refusal
from cockpit.act.guards.guard_registry import standard_guards
from cockpit.act.guards.redundant_read import RedundantReadGuard
from cockpit.act.model_tools import parse_call
from cockpit.core.canonical_json import canonical_json, digest
from cockpit.core.text import pluralize
from cockpit.loop.decisions.approval_policy import approving_policy
from cockpit.loop.decisions.await_decision import find_discussed_predecessor
from cockpit.loop.decisions.pass_without_asking import pass_without_asking
from cockpit.loop.decisions.revision_changes import list_changes
from cockpit.loop.phases.read_guard_state import read_guard_state
from cockpit.loop.phases.reading_calls import request_arguments
from cockpit.loop.session_state.ask_own_guards import ask_own_guards
from cockpit.loop.session_state.compare_with_packet import PacketComparison, compare_with_packet
from cockpit.loop.trust.pass_items import pass_covered_items
from cockpit.loop.wave_context import WaveContext
from cockpit.observe.context_request import ContextRequest, RequestRefused, parse_request
from cockpit.observe.gateway import ContextGateway
from cockpit.observe.preview_cost import Preview, band_for, sum_tokens
from cockpit.observe.project_snapshot import ProjectSnapshot
from cockpit.observe.rendered_cost import sum_costs
from cockpit.observe.scope_items import ScopeItem
from cockpit.observe.sources.stored_records import StoredRecords
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.waves import ContextRefused
from cockpit.store.journal.event_types import Action
from cockpit.store.sessions import context_requests, proposals

FROM_STORE = "stored facts"
"""Who grants a request of which everything was read before and nothing has changed."""
MAX_LOW_RISK_TOKENS = 20_000
"""A request for more tokens than this is of medium risk: it crowds the packet."""


def request_id_of_call(key: str) -> str:
    """Return the request id that follows from a call's idempotency key, so that a call asks once."""
    return f"q-{key.removeprefix('k-')[:12]}"


class PreparedRequest(Struct, frozen=True):
    """A context request that was previewed. Without refusal and body it is stored already."""

    refused: ContextRefused | None = None
    """Why nothing of it can be granted, or that all of it is in the packet."""
    body: Mapping[str, Any] | None = None
    """What the proposal shows."""
    is_stored: bool = False
    """Whether everything was read before and nothing has changed: no proposal is needed."""


async def propose_context_request(context: WaveContext, call: Mapping[str, Any]) -> None:
    """Propose a call that asks to read, or serve it from what is stored; a policy or rules may let it pass.

    A request of which nothing can be granted is refused, with a message that the model can act on.
    """
    prepared = await prepare_request(context, call)
    if (refused := prepared.refused) is not None:
        await context.store.write(lambda tx: _refuse(tx, context, refused))
    else:
        await store_request(context, call, prepared)


async def store_request(
    context: WaveContext, call: Mapping[str, Any], prepared: PreparedRequest
) -> None:
    """Store a request that was not refused, once."""
    body = prepared.body
    if body is not None:
        create = _serve_stored if prepared.is_stored else _create_proposal
        await context.store.write(lambda tx: create(tx, context, call, body))


async def prepare_request(context: WaveContext, call: Mapping[str, Any]) -> PreparedRequest:
    """Check and preview a call that asks to read; nothing is read and nothing stored."""
    arguments = request_arguments(call)
    parsed = parse_call("request_context", canonical_json(arguments))
    guards = standard_guards(context.engine.ground.confined)

    def find_refusal(connection: sqlite3.Connection) -> tuple[GuardState | None, Refusal | None]:
        if _is_stored(connection, call):
            return None, None
        state = read_guard_state(connection, context)
        # The guards read files: not on the event loop.
        return state, first_refusal(guards, parsed, state)

    def refuse(message: str, guard: str = "") -> PreparedRequest:
        return PreparedRequest(
            ContextRefused(message=message, request=dict(arguments), guard=guard)
        )

    state, refusal = await context.store.read(find_refusal)
    if state is None:
        return PreparedRequest()
    refusal = refusal or await ask_own_guards(context, parsed, state)
    if refusal is not None:
        return refuse(refusal.message, refusal.guard)
    try:
        request = parse_request(arguments, rev=context.session.rev)
    except RequestRefused as error:
        return refuse(str(error))
    gateway = open_gateway(context)
    names = [str(item) for item in request.scope]
    compared = await compare_with_packet(context, gateway, names)
    state = replace(state, shown_items=compared.shown)
    redundant = RedundantReadGuard(context.engine.ground.confined)
    places = await asyncio.to_thread(lambda: {n: redundant.find_place(n, state) for n in names})
    if all(places.values()):
        # Spelled as the items are read, not as the model wrote them.
        whole = parse_call("request_context", canonical_json({**arguments, "scope": names}))
        refusal = await asyncio.to_thread(redundant.check, whole, state)
        if refusal is not None:
            return refuse(refusal.message, refusal.guard)
    unread = [item for item in request.scope if not places[str(item)]]
    unread = [item for item in unread if str(item) not in compared.stored]
    try:
        read = await gateway.preview(replace(request, scope=tuple(unread))) if unread else ()
    except RequestRefused as error:
        return refuse(str(error))
    by_name = {str(preview.item): preview for preview in read}
    previews = [
        by_name.get(str(item)) or _preview_unread(item, places[str(item)], compared)
        for item in request.scope
    ]
    items = [preview_record(preview) for preview in previews]
    if all(item["refused"] for item in items):
        return refuse("; ".join(f"{item['item']}: {item['refused']}" for item in items))
    is_stored = all(item["item"] in compared.stored for item in items if not item["refused"])
    return PreparedRequest(body=_body(request, items), is_stored=is_stored)


async def propose_before_packet(context: WaveContext, key: str, request: ContextRequest) -> None:
    """Propose a request that cockpit makes before the session has a packet.

    Not where it is stored already, nothing of it can be read, or one of the user's own guards refuses it.
    """
    call: dict[str, Any] = {"call_id": "", "key": key}
    if context.store.read_now(lambda connection: _is_stored(connection, call)):
        return
    arguments = {
        "purpose": request.purpose,
        "question": request.question,
        "scope": [str(item) for item in request.scope],
        "escalation": request.escalation,
    }
    state = GuardState(project_repo=context.engine.repo, pinned_rev=context.session.rev is not None)
    parsed = parse_call("request_context", canonical_json(arguments))
    if await ask_own_guards(context, parsed, state) is not None:
        return
    items = [preview_record(each) for each in await open_gateway(context).preview(request)]
    if not all(item["refused"] for item in items):
        body = _body(request, items)
        await context.store.write(lambda tx: _create_proposal(tx, context, call, body))


def _body(request: ContextRequest, items: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "purpose": request.purpose,
        "question": request.question,
        "escalation": request.escalation,
        "items": items,
        "total_tokens": sum_tokens(items),
    }


def _preview_unread(item: ScopeItem, place: str | None, compared: PacketComparison) -> Preview:
    """Return the preview of an item that needs no look: it is in the packet, or its facts are stored."""
    if place is not None:
        reason = f"it is in your context already ({place}), unchanged"
        return Preview(item, 0, band_for(item.kind), refused=reason)
    answer = compared.stored[str(item)]
    return Preview(
        item, sum_costs(answer), answer[0].band, note="from stored facts: nothing is read again"
    )


def _serve_stored(
    tx: Tx, context: WaveContext, call: Mapping[str, Any], body: Mapping[str, Any]
) -> None:
    """Grant a request of which all was read before and nothing has changed: it reads nothing."""
    context_requests.create(
        tx,
        request_id=request_id_of_call(call["key"]),
        session_id=context.session.session_id,
        wave_id=context.wave.wave_id,
        call_id=call["call_id"],
        purpose=body["purpose"],
        question=body["question"],
        escalation=body["escalation"],
        items=body["items"],
        decided_by=FROM_STORE,
        stored=sum(1 for item in body["items"] if not item["refused"]),
    )


def open_gateway(context: WaveContext) -> ContextGateway:
    """Return the gateway as this session may use it: at its revision, with its limits."""
    engine = context.engine
    ground = ProjectSnapshot(
        engine.ground.confined,
        rev=context.session.rev,
        repo=engine.repo,
        records=StoredRecords(engine.store, context.session.session_id),
        skills=engine.skills.folders(),
        knowledge=engine.librarian,
    )
    return ContextGateway(ground, engine.settings.observe)


def preview_record(preview: Preview) -> dict[str, Any]:
    """Return one item as the body of a context proposal lists it."""
    return {
        "item": str(preview.item),
        "level": preview.item.level,
        "tokens": preview.tokens,
        "band": preview.band,
        "refused": preview.refused,
        "note": preview.note,
    }


def _create_proposal(
    tx: Tx, context: WaveContext, call: Mapping[str, Any], body: Mapping[str, Any]
) -> None:
    proposal_id = f"p-{digest([call['key'], 'context'])[:10]}"
    session_id = context.session.session_id
    before = find_discussed_predecessor(tx.connection, session_id, "context", proposal_id)
    if before is None:
        body = pass_covered_items(
            tx,
            context.engine.settings,
            context.session,
            request_id_of_call(call["key"]),
            context.wave.wave_id,
            call["call_id"],
            body,
            _risk_of(body),
        )
    proposal = proposals.create(
        tx,
        proposal_id=proposal_id,
        kind="context",
        session_id=session_id,
        wave_id=context.wave.wave_id,
        title=f"read {_count_grantable(body['items'])}",
        body={**body, "changes": list_changes(before, body)} if before else body,
        risk=_risk_of(body),
        revises=before.proposal_id if before else None,
        task_id=context.session.task_id,
        deadline_s=context.proposal_deadline_s,
    )
    context_requests.create(
        tx,
        request_id=request_id_of_call(call["key"]),
        session_id=session_id,
        wave_id=context.wave.wave_id,
        call_id=call["call_id"],
        purpose=body["purpose"],
        question=body["question"],
        escalation=body["escalation"],
        items=body["items"],
        proposal_id=proposal_id,
    )
    policy = approving_policy(context.session.policy, "context")
    pass_without_asking(tx, context.engine.settings, proposal, policy)


def _risk_of(body: Mapping[str, Any]) -> str:
    return "medium" if body["total_tokens"] > MAX_LOW_RISK_TOKENS else "low"


def _is_stored(connection: sqlite3.Connection, call: Mapping[str, Any]) -> bool:
    row = connection.execute(
        "SELECT 1 FROM context_requests WHERE request_id=?", (request_id_of_call(call["key"]),)
    ).fetchone()
    return row is not None


def _refuse(tx: Tx, context: WaveContext, refused: ContextRefused) -> None:
    """Journal a refusal; a wave that resumes after a crash has it already."""
    row = tx.execute(
        "SELECT 1 FROM journal WHERE session_id=? AND wave_id=? AND action=?"
        " AND json_extract(detail_json, '$.message')=?",
        (
            *(context.session.session_id, context.wave.wave_id),
            *(str(Action.CONTEXT_REFUSED), refused.message),
        ),
    ).fetchone()
    if row is None:
        context.journal(tx, refused, result="refused")


def _count_grantable(items: Sequence[Mapping[str, Any]]) -> str:
    count = sum(1 for item in items if not item["refused"])
    return pluralize(count, "item")
