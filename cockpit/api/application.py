"""The application: the routes, their errors as problem documents, and the OpenAPI document."""

from __future__ import annotations

import sqlite3
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, compile_path

from cockpit.access.capability_tokens import TokenRefused
from cockpit.access.principals import Caller
from cockpit.access.token_scopes import APPROVE, PROPOSALS_DECIDE, NotAllowed
from cockpit.api.callers import open_counter
from cockpit.api.operations import OPERATION, Operation, build_document, routes_of
from cockpit.api.problem_documents import REFUSED, STATUS, STATUS_CODES, of_error, problem
from cockpit.api.routes import (
    chains,
    collections,
    events,
    journal,
    monitoring,
    orientation,
    proposals,
    sessions,
    tasks,
    tokens,
    webhooks,
)
from cockpit.api.served_project import ServedProject
from cockpit.api.server_sent_events import JournalStream
from cockpit.core.errors import CockpitError
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.db.database import Store
from cockpit.store.journal.refused_requests import RefusedRequests

DOCUMENT = "/openapi.json"
_OF_ACCESS = {*STATUS_CODES[401], *STATUS_CODES[403]}
"""Codes that say who may not do something: nothing goes before them."""
_ALSO_OPENED_BY = {PROPOSALS_DECIDE: APPROVE}
"""By scope of a route: another scope whose holders it asks for more, by what they decide."""
OPERATIONS: tuple[Operation, ...] = tuple(
    operation
    for topic in (
        orientation.topic,
        proposals.topic,
        sessions.topic,
        tasks.topic,
        chains.topic,
        events.topic,
        journal.topic,
        tokens.topic,
        webhooks.topic,
        monitoring.topic,
        collections.topic,
    )
    for operation in topic.operations
)
"""Every operation, in the order of the document."""


def application(
    store: Store,
    settings: RuntimeSettings,
    refused: RefusedRequests | None = None,
    project: ServedProject | None = None,
) -> Starlette:
    """The operations over ``store``, without the gate before them (:mod:`cockpit.api.middleware`).

    ``project`` runs sessions; by default the server runs none. ``refused`` journals refusals; by default
    one of its own, which writes none after the first of a minute.
    """

    async def show_document(request: Request) -> Response:
        await open_counter(request).read(lambda connection, caller: None)
        return JSONResponse(build_document(OPERATIONS))

    handlers: dict[Any, Any] = {
        CockpitError: _answer_error,
        HTTPException: _answer_http_error,
        Exception: _answer_crash,
    }
    routes = [*routes_of(OPERATIONS), Route(DOCUMENT, show_document)]
    app = Starlette(routes=routes, exception_handlers=handlers)
    app.router.redirect_slashes = False
    app.state.project = project or ServedProject(store, settings)
    app.state.stream = JournalStream(store)
    app.state.numbers = monitoring.Numbers()
    app.state.refused = refused or RefusedRequests(store, "http")
    return app


async def _answer_error(request: Request, error: CockpitError) -> Response:
    if 400 <= STATUS.get(error.code, REFUSED) < 500 and error.code not in _OF_ACCESS:
        error = await _find_refusal(request) or error
    refused: RefusedRequests = request.app.state.refused
    await refused.add(error.code, str(error), f"{request.method} {request.url.path}")
    return of_error(error)


async def _find_refusal(request: Request) -> CockpitError | None:
    """Return why the token of a request does not open its route; None where it does.

    A request is checked in parts, some of them before its token is looked up. Whoever may not call the route
    learns nothing of the others.
    """
    operation: Operation | None = request.scope.get(OPERATION)
    if operation is None or not operation.scope:
        return None
    scope = operation.scope
    if operation.topic == collections.topic.name:
        scope = collections.scope_of(request.url.path) or scope

    def check(connection: sqlite3.Connection, caller: Caller) -> None:
        if _ALSO_OPENED_BY.get(scope) not in caller.scopes:
            caller.require(scope, f"call {request.url.path}")

    try:
        await open_counter(request).read(check)
    except (TokenRefused, NotAllowed) as refusal:
        return refusal
    return None


async def _answer_http_error(request: Request, error: HTTPException) -> Response:
    headers = dict(error.headers or {})
    if error.status_code == 405:
        headers["Allow"] = ", ".join(_methods_at(request))
        detail = (
            f"{request.method} is not what this address takes; it takes {headers.get('Allow')}."
        )
        return problem("method_not_allowed", detail, headers=headers)
    if error.status_code == 404:
        return problem("not_found", f"There is no {request.url.path} here.", headers=headers)
    return problem("usage", str(error.detail), headers=headers)


def _methods_at(request: Request) -> list[str]:
    """The methods of every route at the address; the router names those of the first one only."""
    path = request.url.path
    matching = [
        each
        for each in OPERATIONS
        if compile_path(each.path)[0].match(path)
        and (each.topic != collections.topic.name or collections.scope_of(path))
    ]
    return sorted({each.method for each in matching} or {"GET"})


async def _answer_crash(request: Request, error: Exception) -> Response:
    return problem(
        "error",
        f"Something unforeseen happened ({type(error).__name__}). The server's log has the details.",
    )
