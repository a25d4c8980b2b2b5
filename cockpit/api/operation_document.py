"""What an operation says of itself in the OpenAPI document: its scope, its body, its answers.

See ``docs/reference/http.md``, errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
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

_OBJECT = {"type": "object"}
_REFUSED = {
    "description": "A problem document; its code says what is wrong.",
    "content": {MEDIA_TYPE: {"schema": PROBLEM}},
}
_OF_FASTAPI = "HTTPValidationError"


def operation(
    router: APIRouter,
    method: str,
    path: str,
    summary: str,
    scope: str,
    *,
    status: int = 200,
    returns: Mapping[str, Any] = _OBJECT,
    media_type: str = "application/json",
    body: type[Any] | Mapping[str, Any] | None = None,
    required: bool = True,
    once: bool = False,
    has_tag: bool = False,
    takes_match: bool = False,
    parameters: Sequence[Mapping[str, Any]] = (),
) -> Callable[[E], E]:
    """Return the decorator that adds a function to ``router`` as the operation at an address.

    ``scope``: empty for a route without a token. ``returns`` is the schema of its answer, ``body`` the record
    or schema of its body; ``once``: it takes an idempotency key; ``has_tag``: it answers with a version;
    ``takes_match``: it takes ``If-Match``.
    """
    taken = [*parameters]
    answer: dict[str, Any] = {"content": {media_type: {"schema": dict(returns)}}}
    responses: dict[int | str, Any] = {status: answer, "4XX": _REFUSED, "5XX": _REFUSED}
    if has_tag:
        taken.append(_header("If-None-Match", "Answer 304 where it still is this version."))
        responses[304] = {"description": "It still is the version that If-None-Match names."}
        answer["headers"] = {"ETag": {"description": "Its version.", "schema": {"type": "string"}}}
    if takes_match:
        taken.append(_header("If-Match", "Change it only where it still is this version."))
    if once:
        taken.append(
            _header(
                KEY_HEADER,
                "A repeat with the same key and body gets the first answer for a day; with another body it"
                " is refused.",
                LONGEST_KEY,
            )
        )
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
        response_class=Response if media_type != "application/json" else JSONResponse,
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


def _header(name: str, description: str, longest: int = 1_000) -> dict[str, Any]:
    return {
        "name": name,
        "in": "header",
        "required": False,
        "description": description,
        "schema": {"type": "string", "maxLength": longest},
    }
