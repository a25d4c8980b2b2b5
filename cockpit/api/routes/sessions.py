"""Sessions: list, show, start, resume and interrupt them, and send them messages.

A session that is started or resumed here runs in the server's process. See ``docs/reference/http.md``,
sessions.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from msgspec import Meta, Struct

from cockpit.access.principals import Caller, journal_actor
from cockpit.access.token_scopes import READ, SESSIONS_RUN
from cockpit.api.answers import answered, page, read_cursor, require_match, tagged
from cockpit.api.callers import Answer, At, Counter, repeat, require_policy
from cockpit.api.operation_document import declared
from cockpit.api.schemas import read_body
from cockpit.api.served_project import require_own
from cockpit.core.canonical_json import text_digest
from cockpit.core.errors import CockpitError, IllegalTransition
from cockpit.core.read_record import describe
from cockpit.decide.model import ModelError
from cockpit.loop.decisions.approval_policy import Policy
from cockpit.loop.intake.fork_session import fork_session
from cockpit.loop.runtime_settings import Limits
from cockpit.loop.user_message import send_message
from cockpit.loop.views.session_report import session_document
from cockpit.loop.views.transcript import document
from cockpit.store.db import idempotent_answers
from cockpit.store.db.idempotent_answers import KeptAnswer
from cockpit.store.db.keyset_page import select_page
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import sessions
from cockpit.store.sessions.session_states import select_asking, state_of
from cockpit.store.sessions.sessions import Session

router = APIRouter(prefix="/api/sessions", tags=["sessions"])

MAX_TEXT = 200_000
"""Characters of a message."""
Status = Literal["running", "waiting", "completed", "failed", "stopped"]
State = Literal["running", "waiting", "paused", "stopped", "done", "blocked", "failed"]
Statuses = Annotated[Status, Query(description="Only sessions of this status.")]
Task = Annotated[str, Query(max_length=40, description="Only sessions of this task, such as T-4.")]
Cursor = Annotated[str, Query(max_length=400, description="The `next` of the page before.")]
Limit = Annotated[int, Query(ge=1, le=200, description="How many at most.")]


class ModelUnusable(CockpitError):
    """No session can begin with this model; the message says why."""

    code = "model_unusable"


@dataclass(frozen=True, slots=True)
class SessionBody:
    """A session in a list. ``state``: the word that every screen shows, by ``status`` and ``result``.

    ``is_running_here``: this server's process runs it.
    """

    session_id: str
    state: State
    status: str
    task_type: str
    title: str
    model: str
    policy: str
    interactive: bool
    role: str
    task_id: str | None
    agent: str
    transport: str
    branch: str
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost_usd: float | None
    result: dict[str, Any]
    created_at: str
    updated_at: str
    is_running_here: bool


@dataclass(frozen=True, slots=True)
class SessionPage:
    """Sessions, newest first, and the cursor of the next page."""

    items: list[SessionBody]
    next: str | None


@dataclass(frozen=True, slots=True)
class ShownSession(SessionBody):
    """A session; ``report`` is the document of ``cockpit sessions last --json``."""

    report: dict[str, Any]


@dataclass(frozen=True, slots=True)
class SentBody:
    """A message that was sent."""

    session_id: str
    message_id: str


class NewSession(Struct, frozen=True):
    text: Annotated[str, Meta(max_length=MAX_TEXT), describe("The task in the user's words.")]
    task_id: (
        Annotated[str, Meta(max_length=40), describe("Work on this task of the backlog.")] | None
    ) = None
    task_type: Annotated[str, Meta(max_length=100)] | None = None
    model: Annotated[str, Meta(max_length=200)] | None = None
    policy: Annotated[
        Policy | None,
        describe("What is approved without the user; more than `reads` needs proposals.decide."),
    ] = None
    interactive: Annotated[
        bool, describe("Wait for further messages, rather than end with the task.")
    ] = True
    max_waves: Annotated[int, Meta(ge=1, le=10_000)] | None = None
    max_cost: Annotated[float, Meta(ge=0, le=1_000_000), describe("In US dollars.")] | None = None
    max_tokens: Annotated[int, Meta(ge=1, le=10_000_000_000)] | None = None


class NewMessage(Struct, frozen=True):
    text: Annotated[str, Meta(min_length=1, max_length=MAX_TEXT)]


class NewFork(Struct, frozen=True):
    wave: (
        Annotated[
            int, Meta(ge=1), describe("The last wave in common. Default: the last that ended.")
        ]
        | None
    ) = None


@router.get("", summary="List sessions", response_model=SessionPage, **declared(READ, has_tag=True))
async def list_sessions(
    at: At,
    request: Request,
    status: Statuses | None = None,
    task_id: Task = "",
    cursor: Cursor = "",
    limit: Limit = 50,
) -> Response:
    """Newest first."""
    given = {"status=?": status, "task_id=?": task_id}
    terms = {condition: value for condition, value in given.items() if value}

    def look(connection: sqlite3.Connection, caller: Caller) -> dict[str, Any]:
        caller.require(READ, "read sessions")
        ids, following = select_page(
            connection, "sessions", after=read_cursor(cursor), limit=limit, terms=terms
        )
        rows = [sessions.load(connection, each) for each in ids]
        asking = select_asking(connection)
        return page(rows, following, lambda session: _body(at, session, asking))

    return tagged(request, await at.read(look))


@router.get(
    "/{session_id}",
    summary="Show a session",
    response_model=ShownSession,
    **declared(READ, 404, has_tag=True),
)
async def show_session(at: At, request: Request, session_id: str) -> Response:
    """Its waves with their packets, its proposals, its actions and what it used."""

    def look(connection: sqlite3.Connection, caller: Caller) -> dict[str, Any]:
        caller.require(READ, "read sessions")
        return _shown(at, connection, session_id)

    return tagged(request, await at.read(look))


@router.get(
    "/{session_id}/transcript",
    summary="Show a session's messages",
    response_model=dict[str, Any],
    **declared(READ, 404, has_tag=True),
)
async def show_transcript(at: At, request: Request, session_id: str) -> Response:
    """The document of ``cockpit sessions export --format json``."""

    def look(connection: sqlite3.Connection, caller: Caller) -> dict[str, Any]:
        caller.require(READ, "read sessions")
        return document(connection, session_id)

    return tagged(request, await at.read(look))


@router.post(
    "",
    summary="Start a session",
    response_model=SessionBody,
    status_code=201,
    **declared(SESSIONS_RUN, 404, 409, 422, body=NewSession, once=True),
)
async def start_session(at: At, request: Request) -> Response:
    """It runs in the server's process; ``GET /api/journal?session_id=ID`` follows it."""
    body, absence = await request.body(), await at.explain_absence()
    requested = await at.request_digest()

    def check(connection: sqlite3.Connection, caller: Caller) -> tuple[Caller, NewSession]:
        caller.require(SESSIONS_RUN, "start sessions")
        given = read_body(body, NewSession, name="the session", max_characters=1_000_000)
        if given.policy is not None:
            require_policy(caller, absence, given.policy, "start", "starting a session")
        return caller, given

    caller, given = await at.read(check)
    key = at.key
    async with at.project.starting:
        kept = await at.write(lambda tx, caller: _find_kept(tx, caller, key))
        if kept is not None:
            return _show_new(repeat(kept, requested))
        at.project.require_room()
        runtime = await at.project.runtime()
        # The same id for a repeat whose first answer was never kept: the server died between the two.
        session_id = f"s-{text_digest(f'{caller.namespace} {key}')[:16]}" if key else None
        if session_id is None or not await at.store.read(
            partial(sessions.exists, session_id=session_id)
        ):
            try:
                session_id = await runtime.start(
                    given.text,
                    model=given.model,
                    policy=given.policy or ("ask" if caller.kind != "person" or absence else None),
                    interactive=given.interactive,
                    limits=_limits(given, at.settings.limits),
                    task_type=given.task_type,
                    task_id=given.task_id,
                    session_id=session_id,
                )
            except ModelError as error:
                raise ModelUnusable(str(error)) from error
        started = session_id

        def keep(tx: Tx, caller: Caller) -> dict[str, Any]:
            shown = _load(at, tx.connection, started)
            if key:
                kept = KeptAnswer(requested, 201, shown)
                idempotent_answers.keep(tx, caller.namespace, key, kept)
            return shown

        shown = await at.write(keep)
        await at.project.ensure_running(started, interactive=given.interactive)
    return _show_new(Answer(201, shown))


@router.post(
    "/{session_id}/messages",
    summary="Send a message to a session",
    response_model=SentBody,
    status_code=202,
    **declared(SESSIONS_RUN, 404, 409, body=NewMessage, once=True),
)
async def send(at: At, request: Request, session_id: str) -> Response:
    """It is in the session's next wave. A session that no process runs is run by this server."""
    body = await request.body()

    def step(tx: Tx, caller: Caller) -> Answer:
        given = read_body(body, NewMessage, name="the message", max_characters=1_000_000)
        session = sessions.load(tx.connection, session_id)
        if session.transport == "evolve":
            raise IllegalTransition(f"{session_id} grows a tool; it takes no messages from here.")
        message_id = send_message(tx, session.session_id, given.text)
        return Answer(202, {"session_id": session.session_id, "message_id": message_id})

    answer = await at.write_once(SESSIONS_RUN, "send messages to sessions", step)
    session = await at.store.read(lambda connection: sessions.load(connection, session_id))
    is_own = not session.role and session.task_type != sessions.EXTERNAL_AGENT
    if is_own and not answer.is_repeat and at.project.has_engine:
        await at.project.ensure_running(session_id)
    return answered(answer)


@router.post(
    "/{session_id}/fork",
    summary="Fork a session",
    response_model=SessionBody,
    status_code=201,
    **declared(SESSIONS_RUN, 404, 409, body=NewFork, once=True),
)
async def fork(at: At, request: Request, session_id: str) -> Response:
    """A new session that knows what this one knew after a wave; it waits for a message."""
    body, absence = await request.body(), await at.explain_absence()

    def step(tx: Tx, caller: Caller) -> Answer:
        given = read_body(body, NewFork, name="the fork", max_characters=10_000)
        source = sessions.load(tx.connection, session_id)
        require_policy(caller, absence, source.policy, "fork", "forking a session")
        forked = fork_session(tx, session_id, given.wave, actor=journal_actor(caller))
        return Answer(201, _load(at, tx.connection, forked.session.session_id))

    answer = await at.write_once(SESSIONS_RUN, "fork sessions", step)
    return _show_new(answer)


@router.post(
    "/{session_id}/resume",
    summary="Resume a session",
    response_model=SessionBody,
    status_code=202,
    **declared(SESSIONS_RUN, 404, 409, writes=True),
)
async def resume(at: At, session_id: str) -> Response:
    """Run it in the server's process, where no other process runs it."""

    def look(connection: sqlite3.Connection, caller: Caller) -> dict[str, Any]:
        caller.require(SESSIONS_RUN, "resume sessions")
        session = sessions.load(connection, session_id)
        require_own(session)
        if session.transport == "evolve":
            raise IllegalTransition(f"`cockpit evolve --continue {session_id}` resumes it.")
        return _load(at, connection, session_id)

    shown = await at.read(look)
    await at.project.ensure_running(session_id)
    return answered(Answer(202, {**shown, "is_running_here": True}))


@router.post(
    "/{session_id}/interrupt",
    summary="Interrupt a session",
    response_model=SessionBody,
    **declared(SESSIONS_RUN, 404, 409, writes=True, takes_match=True),
)
async def interrupt(at: At, request: Request, session_id: str) -> Response:
    """Stop it within its wave; nothing that is stored is lost. Only sessions that this server runs."""

    def look(connection: sqlite3.Connection, caller: Caller) -> Session:
        caller.require(SESSIONS_RUN, "interrupt sessions")
        session = sessions.load(connection, session_id)
        require_match(request, _shown(at, connection, session_id))
        return session

    session = await at.read(look)
    if not await at.project.interrupt(session_id):
        where = (
            f"process {session.lease_owner.split('/')[0]}" if session.lease_owner else "no process"
        )
        raise IllegalTransition(
            f"This server does not run {session_id}: {where} does. Interrupt it there."
        )
    shown = await at.store.read(lambda connection: _load(at, connection, session_id))
    return answered(Answer(200, shown))


def _show_new(answer: Answer) -> Response:
    return answered(answer, location=f"{router.prefix}/{answer.body['session_id']}")


def _find_kept(tx: Tx, caller: Caller, key: str) -> KeptAnswer | None:
    return idempotent_answers.find_in(tx, caller.namespace, key) if key else None


def _limits(given: NewSession, own: Limits) -> Limits:
    """Return the settings' limits, lowered by those of the request and never raised."""
    costs = [cost for cost in (own.max_cost, given.max_cost) if cost is not None]
    tokens = [most for most in (own.max_tokens, given.max_tokens) if most is not None]
    return Limits(
        max_waves=min(own.max_waves, given.max_waves or own.max_waves),
        max_cost=min(costs, default=None),
        max_tokens=min(tokens, default=None),
        deadline_s=own.deadline_s,
    )


def _shown(at: Counter, connection: sqlite3.Connection, session_id: str) -> dict[str, Any]:
    shown = _load(at, connection, session_id)
    return {**shown, "report": session_document(connection, session_id)}


def _load(at: Counter, connection: sqlite3.Connection, session_id: str) -> dict[str, Any]:
    return _body(at, sessions.load(connection, session_id), select_asking(connection))


def _body(at: Counter, session: Session, asking: Collection[str]) -> dict[str, Any]:
    return {
        "session_id": session.session_id,
        "state": state_of(session, asking),
        "status": session.status,
        "task_type": session.task_type,
        "title": session.title,
        "model": session.model,
        "policy": session.policy,
        "interactive": session.interactive,
        "role": session.role,
        "task_id": session.task_id,
        "agent": session.agent,
        "transport": session.transport,
        "branch": session.branch,
        "input_tokens": session.input_tokens,
        "output_tokens": session.output_tokens,
        "cached_tokens": session.cached_tokens,
        "cost_usd": session.cost_usd,
        "result": dict(session.result),
        "created_at": session.created_at,
        "updated_at": session.updated_at,
        "is_running_here": at.project.is_running(session.session_id),
    }
