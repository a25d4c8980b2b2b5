"""Chains: list, show and stop them. See ``docs/reference/http.md``, chains."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from cockpit.access.principals import Caller
from cockpit.access.token_scopes import WORK_READ, WORK_WRITE
from cockpit.api.answers import answered, page, read_cursor, require_match, tagged
from cockpit.api.callers import Answer, At
from cockpit.api.declared import declared
from cockpit.api.schemas import read_body
from cockpit.chains.report.chain_document import chain_document
from cockpit.chains.supervisor import request_stop
from cockpit.core.read_record import describe
from cockpit.store.chains import chains
from cockpit.store.chains.chains import Chain
from cockpit.store.db.keyset_page import select_page
from cockpit.store.db.transaction import Tx

router = APIRouter(prefix="/api/chains", tags=["chains"])

Status = Annotated[str, Query(max_length=40, description="Only chains of this status.")]
Cursor = Annotated[str, Query(max_length=400, description="The `next` of the page before.")]
Limit = Annotated[int, Query(ge=1, le=100, description="How many at most.")]


@dataclass(frozen=True, slots=True)
class ChainBody:
    """A chain with its progress, its cost and its workers (``sessions``)."""

    chain_id: str
    scope: dict[str, Any]
    status: str
    reason: str
    headless: bool
    batch: str
    approve: str
    model: str | None
    runner: str | None
    max_chains: int
    max_cost: float | None
    max_wall_s: float | None
    base_branch: str
    base_commit: str
    branch: str
    report_path: str | None
    created_at: str
    ended_at: str | None
    watched: bool
    progress: dict[str, int]
    tokens: int
    cost_usd: float | None
    wall_s: float
    sessions: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class ChainPage:
    """Chains, newest first, and the cursor of the next page."""

    items: list[ChainBody]
    next: str | None


@dataclass(frozen=True, slots=True)
class Stop:
    now: Annotated[bool, describe("Do not finish the steps in progress.")] = False


@router.get(
    "", summary="List chains", response_model=ChainPage, **declared(WORK_READ, has_tag=True)
)
async def list_chains(
    at: At, request: Request, status: Status = "", cursor: Cursor = "", limit: Limit = 20
) -> Response:
    """Newest first."""
    terms = {"status=?": status} if status else {}

    def look(connection: sqlite3.Connection, caller: Caller) -> dict[str, Any]:
        caller.require(WORK_READ, "read chains")
        ids, following = select_page(
            connection, "chains", after=read_cursor(cursor), limit=limit, terms=terms
        )
        rows = [chains.load(connection, each) for each in ids]
        return page(rows, following, lambda chain: chain_document(connection, chain))

    return tagged(request, await at.read(look))


@router.get(
    "/{chain_id}",
    summary="Show a chain",
    response_model=ChainBody,
    **declared(WORK_READ, 404, has_tag=True),
)
async def show_chain(at: At, request: Request, chain_id: str) -> Response:
    """Its tasks, its cost so far, and how much of its token limit each worker has used."""

    def look(connection: sqlite3.Connection, caller: Caller) -> dict[str, Any]:
        caller.require(WORK_READ, "read chains")
        return chain_document(connection, _load(connection, chain_id))

    return tagged(request, await at.read(look))


@router.post(
    "/{chain_id}/stop",
    summary="Stop a chain",
    response_model=ChainBody,
    **declared(WORK_WRITE, 404, 409, body=Stop, required=False, once=True, takes_match=True),
)
async def stop_chain(at: At, request: Request, chain_id: str) -> Response:
    """It stops after its steps in progress, with ``now`` at once. ``cockpit chain resume`` continues it."""
    body = await request.body()

    def step(tx: Tx, caller: Caller) -> Answer:
        chain = _load(tx.connection, chain_id)
        require_match(request, chain_document(tx.connection, chain))
        given = read_body(body, Stop, name="the request")
        stopped = request_stop(tx, chain.chain_id, now=given.now)
        return Answer(200, chain_document(tx.connection, stopped))

    return answered(await at.write_once(WORK_WRITE, "stop chains", step))


def _load(connection: sqlite3.Connection, chain_id: str) -> Chain:
    return chains.load(connection, chains.read_id(chain_id))
