"""What an operation says of itself in the OpenAPI document: its scope, its body, and every status.

See ``docs/reference/http.md``, errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any, TypeVar

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from cockpit.api.callers import KEY_HEADER, LONGEST_KEY
from cockpit.api.problem_documents import MEDIA_TYPE
from cockpit.api.schemas import PROBLEM
from cockpit.core.read_record import record_schema

E = TypeVar("E", bound=Callable[..., Any])

SCOPE = "x-scope"
"""The member of an operation that names the scope of its token."""

_GUARDED = (400, 401, 403, 421, 500, 503)
_OPEN = (400, 403, 421, 500, 503)
"""Those of a route without a token."""
_WITH_BODY = (408, 413, 415)
_OF_FASTAPI = "HTTPValidationError"


def operation(
    router: APIRouter,
    method: str,
    path: str,
    summary: str,
    scope: str,
    *refused: int,
    status: int = 200,
    returns: Mapping[str, Any] | None = None,
    body: type[Any] | Mapping[str, Any] | None = None,
    required: bool = True,
    once: bool = False,
    has_tag: bool = False,
    takes_match: bool = False,
    parameters: Sequence[Mapping[str, Any]] = (),
    answers: Mapping[int | str, Mapping[str, Any]] | None = None,
    response_class: type[Response] = JSONResponse,
) -> Callable[[E], E]:
    """Return the decorator that adds a function to ``router`` as the operation at an address.

    ``refused`` are statuses of its own beside those of every route. ``returns`` is the schema of its answer,
    ``body`` the record or schema of its body; ``once``: it takes an idempotency key; ``has_tag``: it answers
    with a version; ``takes_match``: it takes ``If-Match``; ``answers`` are further successful answers.
    """
    writes = method not in ("GET", "HEAD")
    guarded = _GUARDED if scope else _OPEN
    statuses = {*guarded, *refused, *(_WITH_BODY if writes else ()), *((422,) if once else ())}
    taken = [*parameters]
    responses: dict[int | str, Any] = {each: _problem(each) for each in sorted(statuses)}
    if returns is not None:
        responses[status] = {"content": {"application/json": {"schema": dict(returns)}}}
    if has_tag:
        taken.append(_header("If-None-Match", "Answer 304 where it still is this version."))
        responses[304] = {"description": "It still is the version that If-None-Match names."}
        responses[200] = {**responses.get(200, {}), "headers": {"ETag": _text("Its version.")}}
    if takes_match:
        taken.append(_header("If-Match", "Change it only where it still is this version."))
        responses[412] = _problem(412)
    if once:
        taken.append(
            _header(
                KEY_HEADER,
                "A repeat with the same key and body gets the first answer for a day; with another body it"
                " is refused.",
                LONGEST_KEY,
            )
        )
    responses |= answers or {}
    extra: dict[str, Any] = {SCOPE: scope} if scope else {}
    if taken:
        extra["parameters"] = taken
    if body is not None:
        schema = record_schema(body, closed=True) if isinstance(body, type) else dict(body)
        extra["requestBody"] = {
            "required": required,
            "content": {"application/json": {"schema": schema}},
        }
    return router.api_route(
        path,
        methods=[method],
        summary=summary,
        status_code=status,
        response_model=None,
        response_class=response_class,
        responses=responses,
        openapi_extra=extra,
    )


def build_document(build: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return the OpenAPI document that ``build`` makes, without the answers of FastAPI itself."""
    document = build()
    for _, _, operation in operations(document):
        own = operation["responses"].get("422", {})
        content = own.get("content", {}).get("application/json", {})
        if content.get("schema", {}).get("$ref", "").endswith(_OF_FASTAPI):
            del operation["responses"]["422"]
    for name in (_OF_FASTAPI, "ValidationError"):
        document.get("components", {}).get("schemas", {}).pop(name, None)
    return document


def operations(document: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield path, method and operation of an OpenAPI document, in its order."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def _problem(status: int) -> dict[str, Any]:
    return {
        "description": f"{HTTPStatus(status).phrase}: a problem document; its code says what is wrong.",
        "content": {MEDIA_TYPE: {"schema": PROBLEM}},
    }


def _header(name: str, description: str, longest: int = 1_000) -> dict[str, Any]:
    return {
        "name": name,
        "in": "header",
        "required": False,
        "description": description,
        "schema": {"type": "string", "maxLength": longest},
    }


def _text(description: str) -> dict[str, Any]:
    return {"description": description, "schema": {"type": "string"}}
