"""A context request becomes a proposal that shows what it would cost; nothing is read before its decision.

See ``docs/reference/loop.md``, context requests.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cockpit.act.guards import Refusal, first_refusal, standard_guards
from cockpit.act.tools import parse_call
from cockpit.core.canonical_json import canonical_json, digest
from cockpit.core.text import pluralize
from cockpit.loop.decisions.approval_policy import approving_policy
from cockpit.loop.decisions.await_decision import find_discussed_predecessor, list_changes
from cockpit.loop.phases.read_guard_state import read_guard_state
from cockpit.loop.phases.reading_calls import request_arguments
from cockpit.loop.trust.pass_items import pass_covered_items
from cockpit.loop.trust.pass_without_asking import pass_without_asking
from cockpit.loop.wave_context import WaveContext
from cockpit.observe.context_request import RequestRefused, parse_request
from cockpit.observe.gateway import ContextGateway, Preview
from cockpit.observe.sources.stored_records import StoredRecords
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.waves import ContextRefused
from cockpit.store.sessions import context_requests, proposals

MAX_LOW_RISK_TOKENS = 20_000
"""A request for more tokens than this is of medium risk: it crowds the packet."""


def request_id_of_call(key: str) -> str:
    """Return the request id that follows from a call's idempotency key, so that a call asks once."""
    return f"q-{key.removeprefix('k-')[:12]}"


async def propose_context_request(
    context: WaveContext, call: Mapping[str, Any]
) -> list[Callable[[Tx], object]]:
    """Preview a call that asks to read; returns the writes that propose it or refuse it.

    A request of which nothing can be granted is refused, with a message that the model can act on.
    """
    arguments = request_arguments(call)
    parsed = parse_call("request_context", canonical_json(arguments))
    is_new = context.engine.recall(context.wave.wave_id).is_new
    guards = standard_guards(context.engine.ground.confined)

    def find_refusal(connection: sqlite3.Connection) -> tuple[bool, Refusal | None]:
        if not is_new and _is_stored(connection, call):
            return True, None
        # The guards read files: not on the event loop.
        return False, first_refusal(guards, parsed, read_guard_state(connection, context))

    is_stored, refusal = await context.store.read(find_refusal)
    if is_stored:
        return []
    if refusal is not None:
        return [lambda tx: _refuse(tx, context, call, refusal.message)]
    try:
        request = parse_request(arguments, rev=context.session.rev)
        previews = await open_gateway(context).preview(request)
    except RequestRefused as error:
        message = str(error)
        return [lambda tx: _refuse(tx, context, call, message)]
    items = [preview_record(preview) for preview in previews]
    if all(item["refused"] for item in items):
        message = "; ".join(f"{item['item']}: {item['refused']}" for item in items)
        return [lambda tx: _refuse(tx, context, call, message)]
    body: dict[str, Any] = {
        "purpose": request.purpose,
        "question": request.question,
        "escalation": request.escalation,
        "items": items,
        "total_tokens": sum(item["tokens"] for item in items if not item["refused"]),
    }
    return [lambda tx: _create_proposal(tx, context, call, body)]


def open_gateway(context: WaveContext) -> ContextGateway:
    """Return the gateway as this session may use it: at its revision, with its limits."""
    engine = context.engine
    return ContextGateway.of(
        root=engine.place.root,
        rev=context.session.rev,
        repo=engine.repo,
        limits=engine.settings.observe,
        records=StoredRecords(engine.store, context.session.session_id),
        skills=engine.skills.folders(),
        knowledge=engine.librarian,
    )


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
    tx: Tx, context: WaveContext, call: Mapping[str, Any], body: dict[str, Any]
) -> None:
    proposal_id = f"p-{digest([call['key'], 'context'])[:10]}"
    session_id = context.session.session_id
    before = find_discussed_predecessor(tx.connection, session_id, "context", proposal_id)
    if before is None:
        body = dict(
            pass_covered_items(
                tx,
                context.engine.settings,
                context.session,
                request_id_of_call(call["key"]),
                context.wave.wave_id,
                call["call_id"],
                body,
                _risk_of(body),
            ).body
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


def _refuse(tx: Tx, context: WaveContext, call: Mapping[str, Any], message: str) -> None:
    refused = ContextRefused(message=message, request=dict(request_arguments(call)))
    context.journal(tx, refused, result="refused")


def _count_grantable(items: Sequence[Mapping[str, Any]]) -> str:
    count = sum(1 for item in items if not item["refused"])
    return pluralize(count, "item")
