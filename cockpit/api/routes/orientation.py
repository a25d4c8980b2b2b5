"""The routes of the API. Each calls one service in one transaction. See ``docs/reference/http.md``."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Query, Request, Response
from starlette.convertors import Convertor, register_url_convertor

from cockpit.access.principals import Caller
from cockpit.access.token_scopes import APPROVE, PROPOSE, READ
from cockpit.api.answers import tagged
from cockpit.api.callers import At, Counter, require_presence
from cockpit.api.operation_document import declared
from cockpit.api.schemas import (
    APPROVAL,
    CHANGE,
    DECISION,
    DigestMissing,
    Standing,
    change_body,
    read_decision,
    request_digest,
    standing,
)
from cockpit.core.canonical_json import text_digest
from cockpit.core.errors import NotFound
from cockpit.loop.decisions.decide_proposal import decide_proposal
from cockpit.loop.decisions.decision_outcome import DecisionOutcome
from cockpit.loop.decisions.propose_profile_change import propose_profile_change
from cockpit.loop.planner.read_session_estimate import read_session_estimate
from cockpit.orient.profile_changes.profile_json import profile_document
from cockpit.store.context import facts, packets, profile_changes, profiles, wave_feedback
from cockpit.store.context.profile_changes import ChangeProposal, ChangeStatus
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import proposals, waves

router = APIRouter(prefix="/api/orientation", tags=["orientation"])

Named = Annotated[
    str, Query(alias="profile_id", max_length=100, description="Default: this project's.")
]
Key = Annotated[
    str,
    Header(
        alias="Idempotency-Key",
        max_length=200,
        description="A repeat with the same key and body gets the stored answer of the first;"
        " with another body it is refused.",
    ),
]
Status = Annotated[ChangeStatus, Query(description="Only changes of this status.")]
Limit = Annotated[int, Query(ge=1, le=200, description="How many at most.")]


@dataclass(frozen=True, slots=True)
class ChangePage:
    """Profile changes, newest first."""

    proposals: list[dict[str, Any]]


@router.get(
    "/profile/current",
    summary="Show the current profile",
    response_model=dict[str, Any],
    **declared(READ, 404, has_tag=True),
)
async def current_profile(at: At, request: Request, profile_id: Named = "") -> Response:
    """The profile's current version, and the adaptation that runs; before any session the version that
    the first one would get."""

    def look(connection: sqlite3.Connection, caller: Caller) -> dict[str, Any]:
        caller.require(READ, "read profiles")
        shipped = profiles.initial_profile(at.settings.token_budget)
        name = profile_id or shipped.profile_id
        if name == shipped.profile_id and not profiles.select_versions(connection, name):
            return {**profile_document(shipped), "adaptation": None}
        profile = profiles.load_current(connection, name)
        return {
            **profile_document(profile),
            "adaptation": profile_changes.running_body(connection, name),
        }

    return tagged(request, await at.read(look))


@router.get(
    "/proposals", summary="List profile changes", response_model=ChangePage, **declared(READ)
)
async def list_changes(
    at: At, status: Status | None = None, limit: Limit = 50
) -> dict[str, list[dict[str, Any]]]:
    """Newest first, each with its body and the digest that its approval has to carry."""

    def step(tx: Tx, caller: Caller) -> list[dict[str, Any]]:
        caller.require(READ, "read proposals")
        proposals.expire_due(tx)
        rows = profile_changes.select_changes(tx.connection, limit, status=status)
        return [_change_body(tx.connection, row) for row in rows]

    return {"proposals": await at.write(step)}


@router.get(
    "/proposals/{id}",
    summary="Show a profile change",
    response_model=dict[str, Any],
    **declared(READ, 404),
)
async def show_change(at: At, id: str) -> dict[str, Any]:  # noqa: A002 - the name in the path
    """The change as whoever decides has to see it, and the digest that its approval has to carry."""

    def step(tx: Tx, caller: Caller) -> dict[str, Any]:
        caller.require(READ, "read proposals")
        proposals.expire_due(tx)
        return _change_body(tx.connection, profile_changes.load(tx.connection, id))

    return await at.write(step)


@router.post(
    "/proposals",
    summary="Propose a profile change",
    status_code=201,
    **declared(
        PROPOSE,
        404,
        409,
        422,
        body=CHANGE,
        answers={200: {"model": Standing, "description": "It was proposed before."}},
    ),
)
async def propose(
    at: At, request: Request, response: Response, profile_id: Named = "", key: Key = ""
) -> Standing:
    """Judged at once: what the guard refuses is kept as rejected, and answered as a problem with the
    verdict; the rest waits for a decision."""
    payload = await request.body()

    def step(tx: Tx, caller: Caller) -> tuple[bool, DecisionOutcome]:
        # Before the shipped profile is written for a caller who may not propose.
        caller.require(PROPOSE, "propose a profile change")
        base = profiles.ensure_default(tx, at.settings.token_budget)
        proposal_id = _keyed(caller, key) if key else tx.ids.new("p")
        repeated = profile_changes.find(tx.connection, proposal_id) is not None
        outcome = propose_profile_change(
            tx,
            at.settings,
            payload,
            caller,
            profile_id=profile_id or base.profile_id,
            proposal_id=proposal_id,
            deadline_s=at.settings.limits.deadline_s,
            request_digest=request_digest(profile_id, payload) if key else "",
        )
        return repeated, outcome

    repeated, outcome = await at.write(step)
    if repeated:
        response.status_code = 200
    return standing(outcome)


@router.post(
    "/proposals/{id}/approve",
    summary="Approve a profile change",
    **declared(APPROVE, 404, 409, 422, 428, body=APPROVAL),
)
async def approve(at: At, request: Request, id: str) -> Standing:  # noqa: A002 - the name in the path
    """It is the current version when this is answered. The body carries the digest of what was shown.
    A permanent change needs orientation.admin as well."""
    return await _decided(at, request, id, "approved")


@router.post(
    "/proposals/{id}/reject",
    summary="Reject a profile change",
    **declared(APPROVE, 404, 409, 422, body=DECISION, required=False),
)
async def reject(at: At, request: Request, id: str) -> Standing:  # noqa: A002 - the name in the path
    """Attention stays as it is."""
    return await _decided(at, request, id, "rejected")


@router.get(
    "/packets/{wave_id}",
    summary="Show the packet of a wave",
    response_model=dict[str, Any],
    **declared(READ, 404, has_tag=True),
)
async def packet_of_wave(at: At, request: Request, wave_id: str) -> Response:
    """What the wave knew: its packet as it was stored, and the sources of the facts in it by fact."""

    def look(connection: sqlite3.Connection, caller: Caller) -> dict[str, Any]:
        caller.require(READ, "read packets")
        stored = packets.load(connection, wave_id)
        packet = stored.packet
        held = [entry.fact_id for _, entry in packet.rendered()]
        texts = facts.load_texts(connection, held)
        return {
            "packet_id": stored.packet_id,
            "wave_id": stored.wave_id,
            "digest": stored.digest,
            "created_at": stored.created_at,
            **packet.body(),
            "sources": {identity: text.source_ref for identity, text in texts.items()},
        }

    return tagged(request, await at.read(look))


class _Text(Convertor[str]):
    """Any text as the rest of a path: the framework's own ``path`` matches no line break."""

    regex = r"[\s\S]*"

    def convert(self, value: str) -> str:
        """Return the text as it is."""
        return value

    def to_string(self, value: str) -> str:
        """Return the text as it is."""
        return value


register_url_convertor("text", _Text())


@router.get(
    "/estimates/{subject:text}",
    summary="Show an estimate",
    response_model=dict[str, Any],
    **declared(READ, 404),
)
async def show_estimate(at: At, subject: str) -> dict[str, Any]:
    """The estimate of a session, or of a run of a task (``T-4/1``): the first, the current, what it took."""

    def look(connection: sqlite3.Connection, caller: Caller) -> dict[str, Any]:
        caller.require(READ, "read estimates")
        body = read_session_estimate(connection, subject)
        if body is None:
            raise NotFound(f"There is no estimate of {subject[:80]!r}.")
        return {"subject": subject, **body}

    return await at.read(look)


@router.get(
    "/feedback/{wave_id}",
    summary="Show the feedback of a wave",
    response_model=dict[str, Any],
    **declared(READ, 404),
)
async def feedback_of_wave(at: At, wave_id: str) -> dict[str, Any]:
    """How good the wave's decision was, as far as is known by now, and how that picture changed."""

    def look(connection: sqlite3.Connection, caller: Caller) -> dict[str, Any]:
        caller.require(READ, "read feedback")
        rows = wave_feedback.select_history(connection, waves.load(connection, wave_id).wave_id)
        if not rows:
            raise NotFound(f"Wave {wave_id} was not judged yet: that happens when it has ended.")
        return {
            **wave_feedback.feedback_body(rows[-1]),
            "history": [wave_feedback.feedback_body(row) for row in rows],
        }

    return await at.read(look)


async def _decided(
    at: Counter, request: Request, proposal_id: str, verdict: Literal["approved", "rejected"]
) -> Standing:
    body = await request.body()
    absence = await at.explain_absence()

    def step(tx: Tx, caller: Caller) -> DecisionOutcome:
        # Who may not decide does not learn whether their body could be read.
        caller.require(APPROVE, "decide on profile changes")
        require_presence(caller, absence, "deciding")
        decision = read_decision(body)
        if verdict == "approved" and decision.shown_digest is None:
            change = profile_changes.load(tx.connection, proposal_id)
            raise DigestMissing(
                f"Approving {change.proposal_id} needs the digest of what you saw, as shown_digest."
                f" GET {router.prefix}/proposals/{change.proposal_id} shows the change with it."
            )
        return decide_proposal(
            tx,
            at.settings,
            proposal_id,
            verdict,
            caller,
            kind="profile",
            shown_digest=decision.shown_digest,
            reason=decision.reason,
        )

    return standing(await at.write(step))


def _change_body(connection: sqlite3.Connection, row: ChangeProposal) -> dict[str, Any]:
    return change_body(row, proposals.load(connection, row.proposal_id))


def _keyed(caller: Caller, key: str) -> str:
    """The proposal that a key names: one principal cannot reach another's."""
    return f"p-{text_digest(f'{caller.namespace} {key}')[:24]}"
