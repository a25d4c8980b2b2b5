"""Operations: the functions that answer requests, by address, and the OpenAPI document of them.

See ``docs/reference/http.md``.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cockpit import __version__
from cockpit.api.callers import KEY_HEADER, LONGEST_KEY, Counter, open_counter
from cockpit.api.problem_documents import MEDIA_TYPE
from cockpit.api.schemas import PROBLEM
from cockpit.core.errors import CockpitError
from cockpit.core.read_record import convert, record_schema

E = TypeVar("E", bound=Callable[..., Any])
Q = TypeVar("Q", bound=Struct)

SCOPE = "x-scope"
"""The member of an operation that names the scope of its token."""
OPERATION = "cockpit.operation"
"""The key of a request's operation in its ASGI scope."""

_OBJECT = {"type": "object"}
_REFUSED = {
    "description": "A problem document; its code says what is wrong.",
    "content": {MEDIA_TYPE: {"schema": PROBLEM}},
}
_BEARER = {"type": "http", "scheme": "bearer", "description": "A token of `cockpit tokens issue`."}
_BEARER_NAME = "HTTPBearer"


class QueryInvalid(CockpitError):
    """A parameter of an address that the operation does not take."""

    code = "usage"


class Operation(Struct, frozen=True):
    """What is answered at an address."""

    topic: str
    method: str
    path: str
    summary: str
    scope: str
    """Empty for an operation without a token."""
    answer: Callable[..., Awaitable[Response]]
    """Called with the request's counter (the request itself, without a scope), its query and the parts of
    its address."""
    query: type[Struct] | None
    document: Mapping[str, Any]
    """What the OpenAPI document says of it."""

    async def serve(self, request: Request) -> Response:
        """Answer a request. Raises ``TokenRefused``, :class:`QueryInvalid`, and what the function raises."""
        request.scope[OPERATION] = self
        given: Counter | Request = open_counter(request) if self.scope else request
        query = () if self.query is None else (read_query(request, self.query),)
        return await self.answer(given, *query, **request.path_params)


class Topic:
    """The operations of one topic, whose addresses begin alike."""

    def __init__(self, name: str, prefix: str = "") -> None:
        self.prefix = prefix
        self.operations: list[Operation] = []
        self.name = name

    def operation(
        self,
        method: str,
        path: str,
        summary: str,
        scope: str,
        *,
        status: int = 200,
        returns: Mapping[str, Any] = _OBJECT,
        media_type: str = "application/json",
        query: type[Struct] | None = None,
        headers: Sequence[Mapping[str, Any]] = (),
        body: type[Any] | Mapping[str, Any] | None = None,
        required: bool = True,
        once: bool = False,
        has_tag: bool = False,
        takes_match: bool = False,
        says: str = "",
    ) -> Callable[[E], E]:
        """Return the decorator that makes a function the operation at an address.

        ``returns`` is the schema of its answer, ``query`` and ``body`` the records (or the schema) of what it
        takes; ``once``: it takes an idempotency key; ``has_tag``: it answers with a version;
        ``takes_match``: it takes ``If-Match``; ``says`` describes it, by default the function's docstring.
        """
        answer: dict[str, Any] = {
            "description": "Done.",
            "content": {media_type: {"schema": dict(returns)}},
        }
        responses: dict[str, Any] = {str(status): answer, "4XX": _REFUSED, "5XX": _REFUSED}
        address = f"{self.prefix}{path}"
        parameters = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            for name in re.findall(r"\{(\w+)\}", address)
        ]
        for name, schema in record_schema(query)["properties"].items() if query else ():
            description = schema.pop("description", "")
            parameters.append(
                {
                    "name": name,
                    "in": "query",
                    "required": False,
                    "description": description,
                    "schema": schema,
                }
            )
        parameters += map(dict, headers)
        if has_tag:
            parameters.append(header("If-None-Match", "Answer 304 where it still is this version."))
            responses["304"] = {"description": "It still is the version that If-None-Match names."}
            tag = {"description": "Its version.", "schema": {"type": "string"}}
            answer["headers"] = {"ETag": tag}
        if takes_match:
            parameters.append(header("If-Match", "Change it only where it still is this version."))
        if once:
            parameters.append(
                header(
                    KEY_HEADER,
                    "A repeat with the same key and body gets the first answer for a day; with another body"
                    " it is refused.",
                    LONGEST_KEY,
                )
            )
        document: dict[str, Any] = {"parameters": parameters, "responses": responses}
        if scope:
            document |= {SCOPE: scope, "security": [{_BEARER_NAME: []}]}
        if body is not None:
            schema = record_schema(body, closed=True) if isinstance(body, type) else dict(body)
            document["requestBody"] = {
                "required": required,
                "content": {"application/json": {"schema": schema}},
            }

        def add(function: E) -> E:
            about = {
                "tags": [self.name],
                "summary": summary,
                "description": says or inspect.cleandoc(function.__doc__ or ""),
                "operationId": f"{method.lower()}{re.sub(r'[^a-z]+', '_', address)}",
            }
            self.operations.append(
                Operation(
                    self.name, method, address, summary, scope, function, query, about | document
                )
            )
            return function

        return add


def read_query(request: Request, record: type[Q]) -> Q:
    """Read the parameters of an address; others than the record has are ignored."""
    try:
        return convert(dict(request.query_params), record, strict=False)
    except msgspec.ValidationError as error:
        raise QueryInvalid(f"query: {error}.") from error


def routes_of(operations: Sequence[Operation]) -> list[Route]:
    """Return the operations as routes, each for its method alone."""
    routes = [Route(each.path, each.serve, methods=[each.method]) for each in operations]
    for route, operation in zip(routes, operations, strict=True):
        route.methods = {operation.method}  # else those that read answer HEAD as well
    return routes


def build_document(operations: Iterable[Operation]) -> dict[str, Any]:
    """Return the OpenAPI document: every operation with its scope, what it takes, and its answers."""
    paths: dict[str, dict[str, Any]] = {}
    for each in operations:
        paths.setdefault(each.path, {})[each.method.lower()] = dict(each.document)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "cockpit",
            "version": __version__,
            "summary": "Proposals, sessions, tasks, chains, events and the journal of one project.",
        },
        "paths": paths,
        "components": {"securitySchemes": {_BEARER_NAME: _BEARER}},
    }


def header(name: str, description: str, longest: int = 1_000) -> dict[str, Any]:
    """Return what the OpenAPI document says of a header that an operation takes."""
    return {
        "name": name,
        "in": "header",
        "required": False,
        "description": description,
        "schema": {"type": "string", "maxLength": longest},
    }
