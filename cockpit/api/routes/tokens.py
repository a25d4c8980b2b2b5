"""Capability tokens: list, issue and revoke them. See ``docs/reference/http.md``, access."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from msgspec import Meta, Struct

from cockpit.access import capability_tokens
from cockpit.access.capability_tokens import Token
from cockpit.access.principals import Caller
from cockpit.access.token_scopes import AUDIT_READ, CAP_ISSUE, CAP_REVOKE, SCOPES, read_scopes
from cockpit.api.answers import answered, page, read_cursor, tagged
from cockpit.api.callers import Answer, At, require_presence
from cockpit.api.operation_document import declared
from cockpit.api.schemas import read_body
from cockpit.core.clock import format_time
from cockpit.core.read_record import describe
from cockpit.store.db.keyset_page import select_page
from cockpit.store.db.transaction import Tx

router = APIRouter(prefix="/api/admin/tokens", tags=["tokens"])

Cursor = Annotated[str, Query(max_length=400, description="The `next` of the page before.")]
Limit = Annotated[int, Query(ge=1, le=200, description="How many at most.")]


@dataclass(frozen=True, slots=True)
class TokenBody:
    """A token, without its secret; ``status`` is ``valid``, ``expired`` or ``revoked``."""

    cap_id: str
    namespace: str
    scopes: list[str]
    status: str
    expires_at: str | None
    revoked_at: str | None
    issued_by: str
    created_at: str


@dataclass(frozen=True, slots=True)
class IssuedToken(TokenBody):
    """A new token. ``token`` is its secret, which only the first answer has."""

    token: str | None = None


@dataclass(frozen=True, slots=True)
class TokenPage:
    """Tokens, newest first, and the cursor of the next page."""

    items: list[TokenBody]
    next: str | None


class NewToken(Struct, frozen=True):
    namespace: Annotated[str, describe("Who holds it, for example `ci` or `agent/s-1`.")]
    scopes: Annotated[
        tuple[str, ...], describe("What it allows.", items={"type": "string", "enum": list(SCOPES)})
    ]
    expires_s: (
        Annotated[float, Meta(ge=1, le=3_153_600_000), describe("Seconds until it expires.")] | None
    ) = None


@router.get(
    "", summary="List tokens", response_model=TokenPage, **declared(AUDIT_READ, has_tag=True)
)
async def list_tokens(at: At, request: Request, cursor: Cursor = "", limit: Limit = 50) -> Response:
    """Newest first, revoked and expired ones included."""
    now = _now(at)

    def look(connection: sqlite3.Connection, caller: Caller) -> dict[str, Any]:
        caller.require(AUDIT_READ, "list tokens")
        ids, following = select_page(
            connection, "capability_tokens", after=read_cursor(cursor), limit=limit
        )
        rows = [capability_tokens.load(connection, each) for each in ids]
        return page(rows, following, lambda token: _body(token, now))

    return tagged(request, await at.read(look))


@router.post(
    "",
    summary="Issue a token",
    response_model=IssuedToken,
    status_code=201,
    **declared(CAP_ISSUE, body=NewToken, once=True),
)
async def issue_token(at: At, request: Request) -> Response:
    """With scopes that the caller has itself. Only you, at a terminal, issue with your own token."""
    body = await request.body()
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
    return answered(answer, location=f"{router.prefix}/{answer.body['cap_id']}")


@router.get(
    "/{cap_id}",
    summary="Show a token",
    response_model=TokenBody,
    **declared(AUDIT_READ, 404, has_tag=True),
)
async def show_token(at: At, request: Request, cap_id: str) -> Response:
    """Who holds it, what it allows, and whether it is valid."""
    now = _now(at)

    def look(connection: sqlite3.Connection, caller: Caller) -> dict[str, Any]:
        caller.require(AUDIT_READ, "list tokens")
        return _body(capability_tokens.load(connection, cap_id), now)

    return tagged(request, await at.read(look))


@router.delete(
    "/{cap_id}",
    summary="Revoke a token",
    response_model=TokenBody,
    **declared(CAP_REVOKE, 404, 409, writes=True),
)
async def revoke_token(at: At, cap_id: str) -> Response:
    """Permanently. Its streams end within seconds."""

    def step(tx: Tx, caller: Caller) -> dict[str, Any]:
        caller.require(CAP_REVOKE, "revoke tokens")
        return _body(capability_tokens.revoke(tx, cap_id, caller), tx.now())

    return answered(Answer(200, await at.write(step)))


def _now(at: At) -> str:

    return format_time(at.store.clock.now())


def _body(token: Token, now: str) -> dict[str, Any]:
    return {
        "cap_id": token.cap_id,
        "namespace": token.namespace,
        "scopes": list(token.scopes),
        "status": token.status(now),
        "expires_at": token.expires_at,
        "revoked_at": token.revoked_at,
        "issued_by": token.issued_by,
        "created_at": token.created_at,
    }
