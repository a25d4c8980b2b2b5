"""The routes of the API. Each calls one service in one transaction. See ``docs/reference/http.md``."""

from __future__ import annotations

import sqlite3
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct
from starlette.responses import Response

from cockpit.access.principals import Caller
from cockpit.access.token_scopes import APPROVE, PROPOSE, READ
from cockpit.api.answers import answered, tagged
from cockpit.api.callers import Answer, Counter, require_presence
from cockpit.api.operations import Topic
from cockpit.api.routes.proposals import DECIDED, decide_once, decided_body
from cockpit.api.schemas import APPROVAL, CHANGE, Verdict, read_body
from cockpit.core.errors import NotFound
from cockpit.core.read_record import describe
from cockpit.loop.decisions.propose_profile_change import propose_profile_change
from cockpit.orient.profile_changes.profile_json import profile_document
from cockpit.store.context import facts, packets, profile_changes, profiles, wave_feedback
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import waves

topic = Topic("orientation", "/api/orientation")


class ProfileQuery(Struct, frozen=True):
    profile_id: Annotated[
        str, Meta(max_length=100), describe("The profile. Default: this project's.")
    ] = ""


@topic.operation(
    "GET", "/profile/current", "Show the current profile", READ, query=ProfileQuery, has_tag=True
)
async def current_profile(at: Counter, query: ProfileQuery) -> Response:
    """The profile's current version, and the adaptation that runs; before any session the version that
    the first one would get."""

    def look(connection: sqlite3.Connection, caller: Caller) -> dict[str, Any]:
        caller.require(READ, "read profiles")
        shipped = profiles.initial_profile(at.settings.token_budget)
        name = query.profile_id or shipped.profile_id
        if name == shipped.profile_id and not profiles.select_versions(connection, name):
            return {**profile_document(shipped), "adaptation": None}
        profile = profiles.load_current(connection, name)
        return {
            **profile_document(profile),
            "adaptation": profile_changes.running_body(connection, name),
        }

    return tagged(at.request, await at.read(look))


@topic.operation(
    "POST",
    "/proposals",
    "Propose a profile change",
    PROPOSE,
    status=201,
    returns=DECIDED,
    query=ProfileQuery,
    body=CHANGE,
    once=True,
)
async def propose(at: Counter, query: ProfileQuery) -> Response:
    """Judged at once: what the guard refuses is kept as rejected, and answered as a problem with the
    verdict; the rest waits for a decision."""
    payload = await at.request.body()

    def step(tx: Tx, caller: Caller) -> Answer:
        base = profiles.ensure_default(tx, at.settings.token_budget)
        outcome = propose_profile_change(
            tx,
            at.settings,
            payload,
            caller,
            profile_id=query.profile_id or base.profile_id,
            proposal_id=tx.ids.new("p"),
            deadline_s=at.settings.limits.deadline_s,
        )
        return Answer(201, decided_body(outcome), failure=outcome.failure())

    return answered(await at.write_once(PROPOSE, "propose a profile change", step))


@topic.operation(
    "POST",
    "/proposals/{id}/approve",
    "Approve a profile change",
    APPROVE,
    returns=DECIDED,
    body=APPROVAL,
    once=True,
)
async def approve(at: Counter, id: str) -> Response:  # noqa: A002 - the name in the path
    """It is the current version when this is answered. The body carries the digest of what was shown.
    A permanent change needs orientation.admin as well."""
    return await _decide(at, id, "approved")


@topic.operation(
    "POST",
    "/proposals/{id}/reject",
    "Reject a profile change",
    APPROVE,
    returns=DECIDED,
    body=Verdict,
    required=False,
    once=True,
)
async def reject(at: Counter, id: str) -> Response:  # noqa: A002 - the name in the path
    """Attention stays as it is."""
    return await _decide(at, id, "rejected")


@topic.operation("GET", "/packets/{wave_id}", "Show the packet of a wave", READ, has_tag=True)
async def packet_of_wave(at: Counter, wave_id: str) -> Response:
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

    return tagged(at.request, await at.read(look))


@topic.operation("GET", "/feedback/{wave_id}", "Show the feedback of a wave", READ)
async def feedback_of_wave(at: Counter, wave_id: str) -> Response:
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

    return answered(Answer(200, await at.read(look)))


async def _decide(
    at: Counter, proposal_id: str, verdict: Literal["approved", "rejected"]
) -> Response:
    body, absence = await at.request.body(), await at.explain_absence()
    # Who may not decide does not learn whether their body could be read.
    await at.read(lambda connection, caller: _check(caller, absence))
    given = read_body(body, Verdict, name="the decision")
    answer = await decide_once(
        at, proposal_id, verdict, absence, given.shown_digest, given.reason, kind="profile"
    )
    return answered(answer)


def _check(caller: Caller, absence: str) -> None:
    caller.require(APPROVE, "decide on profile changes")
    require_presence(caller, absence, "deciding")
