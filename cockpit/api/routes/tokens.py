"""Capability tokens: issue and revoke them. See ``docs/reference/http.md``, access."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from starlette.responses import Response

from cockpit.access import capability_tokens
from cockpit.access.capability_tokens import Token
from cockpit.access.principals import Caller
from cockpit.access.token_scopes import CAP_ISSUE, CAP_REVOKE, SCOPES, read_scopes
from cockpit.api.answers import answered
from cockpit.api.callers import Answer, Counter, require_presence
from cockpit.api.operations import Topic
from cockpit.api.resources import row_schema
from cockpit.api.schemas import read_body
from cockpit.core.read_record import describe
from cockpit.store.db.transaction import Tx

topic = Topic("tokens", "/api/admin/tokens")

_TOKEN = row_schema(
    Token,
    status={"type": "string", "enum": ["valid", "expired", "revoked"]},
    token={
        "type": ["string", "null"],
        "description": "Its secret, which only the first answer has.",
    },
)


class NewToken(Struct, frozen=True):
    namespace: Annotated[str, describe("Who holds it, for example `ci` or `agent/s-1`.")]
    scopes: Annotated[
        tuple[str, ...], describe("What it allows.", items={"type": "string", "enum": list(SCOPES)})
    ]
    expires_s: (
        Annotated[float, Meta(ge=1, le=3_153_600_000), describe("Seconds until it expires.")] | None
    ) = None


@topic.operation(
    "POST",
    "",
    "Issue a token",
    CAP_ISSUE,
    status=201,
    returns=_TOKEN,
    body=NewToken,
    once=True,
)
async def issue_token(at: Counter) -> Response:
    """With scopes that the caller has itself. Only you, at a terminal, issue with your own token."""
    body = await at.request.body()
    absence = await at.explain_absence()

    def step(tx: Tx, caller: Caller) -> Answer:
        require_presence(caller, absence, "issuing tokens")
        given = read_body(body, NewToken, name="the token")
        token, secret = capability_tokens.issue(
            tx,
            namespace=given.namespace,
            scopes=read_scopes(given.scopes),
            by=caller,
            expires_s=given.expires_s,
        )
        return Answer(201, {**_body(token, tx.now()), "token": None}, once={"token": secret})

    answer = await at.write_once(CAP_ISSUE, "issue tokens", step)
    return answered(answer, location=f"{topic.prefix}/{answer.body['cap_id']}")


@topic.operation("DELETE", "/{cap_id}", "Revoke a token", CAP_REVOKE, returns=_TOKEN)
async def revoke_token(at: Counter, cap_id: str) -> Response:
    """Permanently. Its streams end within seconds."""

    def step(tx: Tx, caller: Caller) -> dict[str, Any]:
        caller.require(CAP_REVOKE, "revoke tokens")
        return _body(capability_tokens.revoke(tx, cap_id, caller), tx.now())

    return answered(Answer(200, await at.write(step)))


def _body(token: Token, now: str) -> dict[str, Any]:
    return {**msgspec.to_builtins(token), "status": token.status(now)}
