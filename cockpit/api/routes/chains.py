"""Chains: list, show, start, stop and resume them. See ``docs/reference/http.md``, chains."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from msgspec import Meta, Struct

from cockpit.access.principals import Caller, journal_actor
from cockpit.access.token_scopes import SESSIONS_RUN, WORK_READ, WORK_WRITE
from cockpit.api.answers import answered, page, read_cursor, require_match, tagged
from cockpit.api.callers import Answer, At, Counter, repeat, require_policy
from cockpit.api.operation_document import declared
from cockpit.api.schemas import read_body
from cockpit.chains.chain_request import ChainRequest, find_requested
from cockpit.chains.report.chain_document import chain_document
from cockpit.chains.supervisor import request_stop
from cockpit.core.canonical_json import text_digest
from cockpit.core.errors import IllegalTransition
from cockpit.core.read_record import InvalidRecord, describe
from cockpit.loop.decisions.approval_policy import Policy
from cockpit.store.backlog.epics_and_stories import EPICS, STORIES
from cockpit.store.chains import chains
from cockpit.store.chains.chains import Chain
from cockpit.store.db import idempotent_answers
from cockpit.store.db.idempotent_answers import KeptAnswer
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


class NewChain(Struct, frozen=True):
    """What a chain works on, and its limits. Without an epic or a story it is the whole backlog."""

    epic_id: Annotated[str, Meta(min_length=1, max_length=40)] | None = None
    story_id: Annotated[str, Meta(min_length=1, max_length=40)] | None = None
    parallel: (
        Annotated[
            int,
            Meta(ge=1, le=64),
            describe("Tasks at the same time. Default: 2 to 4, as it goes."),
        ]
        | None
    ) = None
    policy: Annotated[
        Policy | None,
        describe("What is approved without the user; more than `reads` needs proposals.decide."),
    ] = None
    model: Annotated[str, Meta(min_length=1, max_length=200)] | None = None
    runner: (
        Annotated[
            str,
            Meta(min_length=1, max_length=100),
            describe("An external agent of your configuration. Default: embedded."),
        ]
        | None
    ) = None
    max_workers: Annotated[int, Meta(ge=1, le=1000), describe("Worker processes.")] | None = None
    max_cost: Annotated[float, Meta(ge=0, le=100_000), describe("In US dollars.")] | None = None
    max_wall_s: (
        Annotated[int, Meta(ge=1, le=100_000_000), describe("Seconds that its workers may run.")]
        | None
    ) = None


class Stop(Struct, frozen=True):
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
    "",
    summary="Start a chain",
    response_model=ChainBody,
    status_code=201,
    **declared(SESSIONS_RUN, 404, 409, 422, body=NewChain, required=False, once=True),
)
async def start_chain(at: At, request: Request) -> Response:
    """It runs in processes of its own, which outlive the server, as `cockpit work --headless` does."""
    body, absence = await request.body(), await at.explain_absence()

    def check(connection: sqlite3.Connection, caller: Caller) -> list[str]:
        caller.require(SESSIONS_RUN, "start chains")
        given = read_body(body, NewChain, name="the chain")
        policy = given.policy or "ask"
        require_policy(caller, absence, policy, "start", "starting a chain")
        return [*_scope(connection, given), f"--approve={policy}", *_options(given)]

    arguments = await at.read(check)
    return await _run(at, 201, ("work", "--headless", *arguments))


@router.post(
    "/{chain_id}/resume",
    summary="Resume a chain",
    response_model=ChainBody,
    status_code=202,
    **declared(SESSIONS_RUN, 404, 409, 422, once=True, takes_match=True),
)
async def resume_chain(at: At, request: Request, chain_id: str) -> Response:
    """It runs in processes of its own, as `cockpit chain resume` does, with the limits that it has."""
    absence = await at.explain_absence()

    def check(connection: sqlite3.Connection, caller: Caller) -> str:
        caller.require(SESSIONS_RUN, "resume chains")
        chain = _load(connection, chain_id)
        require_policy(caller, absence, chain.approve, "resume", "resuming a chain")
        return chain.chain_id

    def check_state(connection: sqlite3.Connection, caller: Caller) -> None:
        chain = _load(connection, chain_id)
        require_match(request, chain_document(connection, chain))
        if chain.status == "completed":
            raise IllegalTransition(f"{chain.chain_id} is complete. Start a new chain.")
        if chains.is_watched(chain):
            raise IllegalTransition(f"{chain.chain_id} is running already.")

    named = await at.read(check)
    return await _run(at, 202, ("chain", "resume", named), check_state)


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
        stopped = request_stop(tx, chain.chain_id, now=given.now, by=journal_actor(caller))
        return Answer(200, chain_document(tx.connection, stopped))

    return answered(await at.write_once(WORK_WRITE, "stop chains", step))


async def _run(
    at: Counter,
    status: int,
    arguments: Sequence[str],
    check: Callable[[sqlite3.Connection, Caller], None] | None = None,
) -> Response:
    """Run ``cockpit ARGUMENTS`` for the caller and answer with its chain; a repeat gets the first answer.

    ``check`` raises for a chain that cannot be run; a repeat is answered before it looks.
    """
    key, requested = at.key, await at.request_digest()

    def identify(tx: Tx, caller: Caller) -> tuple[ChainRequest, KeptAnswer | None]:
        kept = idempotent_answers.find_in(tx, caller.namespace, key) if key else None
        if kept is None and check is not None:
            check(tx.connection, caller)
        # The same id for a repeat whose first answer was never kept: the server died between the two.
        own = text_digest(f"{caller.namespace} {key} {requested}")[:16]
        request = own if key else tx.ids.new("r")
        return ChainRequest(caller.namespace, request), kept

    async with at.project.starting_chain:
        request, kept = await at.write(identify)
        if kept is not None:
            return _show_run(repeat(kept, requested))
        chain_id = await at.store.read(
            lambda connection: find_requested(connection, request.request)
        )
        if not chain_id:
            chain_id = await at.project.run_chain(arguments, request)

    def keep(tx: Tx, caller: Caller) -> dict[str, Any]:
        shown = chain_document(tx.connection, chains.load(tx.connection, chain_id))
        if key:
            kept = KeptAnswer(requested, status, shown)
            idempotent_answers.keep(tx, caller.namespace, key, kept)
        return shown

    shown = await at.write(keep)
    return _show_run(Answer(status, shown))


def _show_run(answer: Answer) -> Response:
    return answered(answer, location=f"{router.prefix}/{answer.body['chain_id']}")


def _scope(connection: sqlite3.Connection, given: NewChain) -> list[str]:
    if given.epic_id is not None and given.story_id is not None:
        raise InvalidRecord("the chain: epic_id and story_id exclude each other.")
    if given.epic_id is not None:
        return [f"--epic={EPICS.load(connection, given.epic_id).epic_id}"]
    if given.story_id is not None:
        return [f"--story={STORIES.load(connection, given.story_id).story_id}"]
    return ["--all"]


def _options(given: NewChain) -> list[str]:
    """Return the options of ``cockpit work`` for what the request names."""
    options = {
        "parallel": given.parallel,
        "model": given.model,
        "runner": given.runner,
        "max-chains": given.max_workers,
        "max-cost": given.max_cost,
        "max-wall": given.max_wall_s,
    }
    return [f"--{name}={value}" for name, value in options.items() if value is not None]


def _load(connection: sqlite3.Connection, chain_id: str) -> Chain:
    return chains.load(connection, chains.read_id(chain_id))
