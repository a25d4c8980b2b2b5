"""Sessions: list, show and start them, and send them messages.

A session that is started here, or wakes up for a message, runs in the server's process. See
``docs/reference/http.md``, sessions.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from functools import partial
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from starlette.responses import Response

from cockpit.access.principals import Caller
from cockpit.access.token_scopes import READ, SESSIONS_RUN
from cockpit.api.answers import answered
from cockpit.api.callers import Answer, Counter, require_policy
from cockpit.api.operations import Topic
from cockpit.api.resources import PageQuery, Resource, row_schema
from cockpit.api.schemas import read_body
from cockpit.core.errors import CockpitError, IllegalTransition
from cockpit.core.read_record import describe
from cockpit.decide.model import ModelError
from cockpit.loop.decisions.approval_policy import Policy
from cockpit.loop.runtime_settings import Limits
from cockpit.loop.user_message import send_message
from cockpit.loop.views.session_report import session_document
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import sessions
from cockpit.store.sessions.session_states import select_asking, state_of
from cockpit.store.sessions.sessions import Session

topic = Topic("sessions", "/api/sessions")

MAX_TEXT = 200_000
"""Characters of a message."""


class ModelUnusable(CockpitError):
    """No session can begin with this model; the message says why."""

    code = "model_unusable"


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


class SessionQuery(PageQuery, frozen=True, kw_only=True):
    status: Annotated[
        Literal["running", "waiting", "completed", "failed", "stopped"] | UnsetType,
        describe("Only sessions of this status."),
    ] = UNSET
    task_id: Annotated[
        str, Meta(max_length=100), describe("Only sessions of this task, such as T-4.")
    ] = ""


def _list_rows(
    at: Counter, connection: sqlite3.Connection, ids: Sequence[str]
) -> list[dict[str, Any]]:
    asking = select_asking(connection)
    rows = [_body(at, sessions.load(connection, each), asking) for each in ids]
    return [{name: row[name] for name in row if name != "words"} for row in rows]


def _show_row(at: Counter, connection: sqlite3.Connection, session_id: str) -> dict[str, Any]:
    shown = _load(at, connection, session_id)
    return {**shown, "report": session_document(connection, session_id)}


def _load(at: Counter, connection: sqlite3.Connection, session_id: str) -> dict[str, Any]:
    return _body(at, sessions.load(connection, session_id), select_asking(connection))


def _body(at: Counter, session: Session, asking: Collection[str]) -> dict[str, Any]:
    return {
        **msgspec.to_builtins(session),
        "state": state_of(session, asking),
        "is_running_here": at.project.is_running(session.session_id),
    }


_SESSION = row_schema(
    Session,
    state={"type": "string", "description": "The word that every screen shows."},
    is_running_here={"type": "boolean", "description": "This server's process runs it."},
    report={"type": "object", "description": "The document of `cockpit sessions last --json`."},
)
RESOURCE = Resource(
    table="sessions",
    scope=READ,
    query=SessionQuery,
    listed=_list_rows,
    shown=_show_row,
)


@topic.operation(
    "POST",
    "",
    "Start a session",
    SESSIONS_RUN,
    status=201,
    returns=_SESSION,
    body=NewSession,
    once=True,
)
async def start_session(at: Counter) -> Response:
    """It runs in the server's process; ``GET /api/journal?session_id=ID`` follows it."""
    body, absence = await at.request.body(), await at.explain_absence()

    def check(connection: sqlite3.Connection, caller: Caller) -> NewSession:
        caller.require(SESSIONS_RUN, "start sessions")
        given = read_body(body, NewSession, name="the session", max_characters=1_000_000)
        if given.policy is not None:
            require_policy(caller, absence, given.policy, "start", "starting a session")
        return given

    given = await at.read(check)

    async def begin(requested: str, caller: Caller) -> str:
        at.project.require_room()
        runtime = await at.project.runtime()
        session_id = f"s-{requested}" if at.key else None
        if session_id is not None and await at.store.read(
            partial(sessions.exists, session_id=session_id)
        ):
            return session_id
        try:
            return await runtime.start(
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

    answer = await at.begin_once(
        at.project.starting, begin, partial(_load, at), SESSIONS_RUN, "start sessions"
    )
    session_id = answer.body["session_id"]
    if not answer.is_repeat:
        await at.project.ensure_running(session_id, interactive=given.interactive)
    return answered(answer, location=f"{topic.prefix}/{session_id}")


@topic.operation(
    "POST",
    "/{session_id}/messages",
    "Send a message to a session",
    SESSIONS_RUN,
    status=202,
    returns={
        "type": "object",
        "properties": {"session_id": {"type": "string"}, "message_id": {"type": "string"}},
    },
    body=NewMessage,
    once=True,
)
async def send(at: Counter, session_id: str) -> Response:
    """It is in the session's next wave. A session that no process runs is run by this server."""
    body = await at.request.body()

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
