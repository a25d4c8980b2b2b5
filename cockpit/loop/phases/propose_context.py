"""Asking for context: a request becomes a proposal that shows what it would cost, and waits.

Propose → review → fetch: here is the first step; nothing has been read when the person sees it.
Source: RFC-09 (invariants); design of Observe.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cockpit.act.guards import GuardState, check, standard_guards
from cockpit.act.tools import parse_call
from cockpit.core.canonical_json import canonical_json, digest
from cockpit.core.text import pluralize
from cockpit.loop.decisions.approval_policy import automatic
from cockpit.loop.decisions.await_decision import changes_since, revised
from cockpit.loop.phases.guard_state import guard_state
from cockpit.loop.wave_context import Here
from cockpit.observe.context_request import RequestRefused, parse_request
from cockpit.observe.gateway import ContextGateway, Preview
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.waves import ContextRefused
from cockpit.store.sessions import context_requests, proposals

LOW_TOKENS = 20_000
"""A request above this many tokens is of medium risk: it crowds the packet."""


def request_id(key: str) -> str:
    """A request's id follows from its call's key: the same call asks once."""
    return f"q-{key.removeprefix('k-')[:12]}"


async def propose(here: Here, call: Mapping[str, Any]) -> list[Callable[[Tx], object]]:
    """Preview a ``request_context`` call; what to write, to put it before the person.

    A request that cannot be granted at all is refused here, with words for the model.
    """
    known = here.store.read_now(lambda connection: _known(connection, here, call))
    if known:
        return []
    read = parse_call(call["name"], canonical_json(call["arguments"]))
    state: GuardState = await here.store.read(lambda connection: guard_state(connection, here))
    refusal = check(standard_guards(here.engine.ground.confined), read, state)
    if refusal is not None:
        return [lambda tx: _refused(tx, here, refusal.message)]
    try:
        request = parse_request(call["arguments"], rev=here.session.rev)
        previews = await gateway(here).preview(request)
    except RequestRefused as error:
        message = str(error)
        return [lambda tx: _refused(tx, here, message)]
    items = [shown_item(preview) for preview in previews]
    if all(item["refused"] for item in items):
        message = "; ".join(f"{item['item']}: {item['refused']}" for item in items)
        return [lambda tx: _refused(tx, here, message)]
    body: dict[str, Any] = {
        "purpose": request.purpose,
        "question": request.question,
        "escalation": request.escalation,
        "items": items,
        "total_tokens": sum(item["tokens"] for item in items if not item["refused"]),
    }
    return [lambda tx: _create(tx, here, call, body)]


def gateway(here: Here) -> ContextGateway:
    """The gateway as this session may use it: at its revision, with its caps."""
    engine = here.engine
    return ContextGateway.of(
        root=engine.place.root,
        rev=here.session.rev,
        repo=engine.repo,
        limits=engine.settings.observe,
    )


def shown_item(preview: Preview) -> dict[str, Any]:
    """One item as the body of a context proposal lists it."""
    return {
        "item": str(preview.item),
        "level": preview.item.level,
        "tokens": preview.tokens,
        "band": preview.band,
        "refused": preview.refused,
        "note": preview.note,
    }


def _create(tx: Tx, here: Here, call: Mapping[str, Any], body: dict[str, Any]) -> None:
    proposal_id = f"p-{digest([call['key'], 'context'])[:10]}"
    session_id = here.session.session_id
    before = revised(tx.connection, session_id, "context", proposal_id)
    shown = {**body, "changes": changes_since(before, body)} if before else body
    deadline = None if here.session.interactive else here.session.limits.get("deadline_s", 3600.0)
    made = proposals.create(
        tx,
        proposal_id=proposal_id,
        kind="context",
        session_id=session_id,
        wave_id=here.wave.wave_id,
        title=f"read {_counted(body['items'])}",
        body=shown,
        risk="medium" if body["total_tokens"] > LOW_TOKENS else "low",
        revises=before.proposal_id if before else None,
        task_id=here.session.task_id,
        deadline_s=deadline,
    )
    context_requests.create(
        tx,
        request_id=request_id(call["key"]),
        session_id=session_id,
        wave_id=here.wave.wave_id,
        call_id=call["call_id"],
        purpose=body["purpose"],
        question=body["question"],
        escalation=body["escalation"],
        items=body["items"],
        proposal_id=proposal_id,
    )
    by = automatic(here.session.policy, "context")
    if by and made.status == "pending":
        proposals.decide(tx, proposal_id, "approved", by=by, shown_digest=made.shown_digest)


def _known(connection: Any, here: Here, call: Mapping[str, Any]) -> bool:
    found = connection.execute(
        "SELECT 1 FROM context_requests WHERE request_id=?", (request_id(call["key"]),)
    ).fetchone()
    return found is not None


def _refused(tx: Tx, here: Here, message: str) -> None:
    here.journal(tx, ContextRefused(message=message), result="refused")


def _counted(items: Sequence[Mapping[str, Any]]) -> str:
    count = sum(1 for item in items if not item["refused"])
    return pluralize(count, "item")
