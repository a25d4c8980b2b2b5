"""Chains: list, show, start and stop them. See ``docs/reference/http.md``, chains."""

from __future__ import annotations

import sqlite3
from functools import partial
from typing import Annotated, Any

from msgspec import Meta, Struct
from starlette.responses import Response

from cockpit.access.principals import Caller, journal_actor
from cockpit.access.token_scopes import SESSIONS_RUN, WORK_READ, WORK_WRITE
from cockpit.api.answers import answered, require_match
from cockpit.api.callers import Answer, Counter, require_policy
from cockpit.api.operations import Topic
from cockpit.api.resources import PageQuery, Resource
from cockpit.api.schemas import read_body
from cockpit.chains.create_chain import ChainRequest, find_requested
from cockpit.chains.report.chain_document import chain_document
from cockpit.chains.supervisor import request_stop
from cockpit.core.read_record import InvalidRecord, describe
from cockpit.loop.decisions.approval_policy import Policy
from cockpit.store.backlog.epics_and_stories import EPICS, STORIES
from cockpit.store.chains import chains
from cockpit.store.chains.chains import Chain
from cockpit.store.db.transaction import Tx

topic = Topic("chains", "/api/chains")

_CHAIN = {"type": "object", "required": ["chain_id", "status"]}


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


class ChainQuery(PageQuery, frozen=True, kw_only=True):
    status: Annotated[str, Meta(max_length=100), describe("Only chains of this status.")] = ""


def _show_row(at: Counter, connection: sqlite3.Connection, chain_id: str) -> dict[str, Any]:
    return chain_document(connection, _load(connection, chain_id))


RESOURCE = Resource(
    table="chains",
    scope=WORK_READ,
    query=ChainQuery,
    listed=lambda at, connection, ids: [_show_row(at, connection, each) for each in ids],
    shown=_show_row,
)


@topic.operation(
    "POST",
    "",
    "Start a chain",
    SESSIONS_RUN,
    status=201,
    returns=_CHAIN,
    body=NewChain,
    required=False,
    once=True,
)
async def start_chain(at: Counter) -> Response:
    """It runs in processes of its own, which outlive the server, as `cockpit work --headless` does."""
    body, absence = await at.request.body(), await at.explain_absence()

    def check(connection: sqlite3.Connection, caller: Caller) -> list[str]:
        caller.require(SESSIONS_RUN, "start chains")
        given = read_body(body, NewChain, name="the chain")
        policy = given.policy or "ask"
        require_policy(caller, absence, policy, "start", "starting a chain")
        return [*_scope(connection, given), f"--approve={policy}", *_options(given)]

    arguments = await at.read(check)

    async def begin(requested: str, caller: Caller) -> str:
        begun = await at.store.read(partial(find_requested, request=requested))
        if begun:
            return begun
        order = ChainRequest(caller.namespace, requested)
        return await at.project.run_chain(("work", "--headless", *arguments), order)

    answer = await at.begin_once(
        at.project.starting_chain, begin, partial(_show_row, at), SESSIONS_RUN, "start chains"
    )
    return answered(answer, location=f"{topic.prefix}/{answer.body['chain_id']}")


@topic.operation(
    "POST",
    "/{chain_id}/stop",
    "Stop a chain",
    WORK_WRITE,
    returns=_CHAIN,
    body=Stop,
    required=False,
    once=True,
    takes_match=True,
)
async def stop_chain(at: Counter, chain_id: str) -> Response:
    """It stops after its steps in progress, with ``now`` at once. ``cockpit work --continue`` resumes it."""
    body = await at.request.body()

    def step(tx: Tx, caller: Caller) -> Answer:
        chain = _load(tx.connection, chain_id)
        require_match(at.request, chain_document(tx.connection, chain))
        given = read_body(body, Stop, name="the request")
        stopped = request_stop(tx, chain.chain_id, now=given.now, by=journal_actor(caller))
        return Answer(200, chain_document(tx.connection, stopped))

    return answered(await at.write_once(WORK_WRITE, "stop chains", step))


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
