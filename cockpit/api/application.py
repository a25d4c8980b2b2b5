"""The application: the routes, their errors as problem documents, and the OpenAPI document."""

from __future__ import annotations

import sqlite3
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match, Route

from cockpit import __version__
from cockpit.access.capability_tokens import TokenRefused
from cockpit.access.principals import Caller
from cockpit.access.token_scopes import APPROVE, PROPOSALS_DECIDE, NotAllowed
from cockpit.api.callers import BEARER, At, open_counter
from cockpit.api.operation_document import SCOPE, build_document
from cockpit.api.problem_documents import REFUSED, STATUS, STATUS_CODES, of_error, problem
from cockpit.api.routes import (
    chains,
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
ROUTERS = (
    orientation.router,
    proposals.router,
    sessions.router,
    tasks.router,
    chains.router,
    events.router,
    journal.router,
    tokens.router,
    webhooks.router,
    monitoring.router,
)
"""Every route, in the order of the document."""


def application(
    store: Store,
    settings: RuntimeSettings,
    refused: RefusedRequests | None = None,
    project: ServedProject | None = None,
) -> FastAPI:
    """The routes over ``store``, without the gate before them (:mod:`cockpit.api.middleware`).

    ``project`` runs sessions; by default the server runs none. ``refused`` journals refusals; by default
    one of its own, which writes none after the first of a minute.
    """
    app = new_application()
    app.state.project = project or ServedProject(store, settings)
    app.state.stream = JournalStream(store)
    app.state.numbers = monitoring.Numbers()
    app.state.refused = refused or RefusedRequests(store, "http")
    for router in ROUTERS:
        app.include_router(router)

    @app.get(DOCUMENT, include_in_schema=False)
    async def openapi(at: At) -> JSONResponse:
        await at.read(lambda connection, caller: None)
        return JSONResponse(document(app))

    app.exception_handler(CockpitError)(_answer_error)
    app.exception_handler(RequestValidationError)(_answer_invalid)
    app.exception_handler(HTTPException)(_answer_http_error)
    app.exception_handler(Exception)(_answer_crash)
    return app


def new_application() -> FastAPI:
    """Return an application without routes."""
    return FastAPI(
        title="cockpit",
        version=__version__,
        summary="Proposals, sessions, tasks, chains, events and the journal of one project.",
        # The pages that show it load scripts from elsewhere, and the document wants a token.
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )


def document(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document: every route with its scope and every status that it answers with."""
    return build_document(app.openapi)


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
    extra = getattr(request.scope.get("route"), "openapi_extra", None) or {}
    scope = extra.get(SCOPE)
    if not scope:
        return None

    def check(connection: sqlite3.Connection, caller: Caller) -> None:
        if _ALSO_OPENED_BY.get(scope) not in caller.scopes:
            caller.require(scope, f"call {request.url.path}")

    try:
        await open_counter(request, await BEARER(request)).read(check)
    except (TokenRefused, NotAllowed) as refusal:
        return refusal
    return None


async def _answer_invalid(request: Request, error: RequestValidationError) -> Response:
    refusal = await _find_refusal(request)
    if refusal is not None:
        return await _answer_error(request, refusal)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return problem("usage", f"{where}: {first['msg']}.")


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
    every = [*(route for router in ROUTERS for route in router.routes), *request.app.routes]
    own = [route for route in every if isinstance(route, Route)]
    matching = [route for route in own if route.matches(request.scope)[0] is Match.PARTIAL]
    return sorted({method for route in matching for method in route.methods or ()})


async def _answer_crash(request: Request, error: Exception) -> Response:
    return problem(
        "error",
        f"Something unforeseen happened ({type(error).__name__}). The server's log has the details.",
    )
