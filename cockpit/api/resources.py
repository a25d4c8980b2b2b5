"""Tables as resources: pages of their rows, newest first, and one row with its version.

See ``docs/reference/http.md``, versions and pages.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query, Request, Response

from cockpit.access.principals import Caller
from cockpit.api.answers import page, read_cursor, tagged
from cockpit.api.callers import At, Counter
from cockpit.api.operation_document import operation
from cockpit.core.errors import CockpitError
from cockpit.store.db.keyset_page import Paged, select_page

Cursor = Annotated[str, Query(max_length=400, description="The `next` of the page before.")]
Limit = Annotated[int, Query(ge=1, le=200, description="How many at most.")]


class FilterInvalid(CockpitError):
    """A filter that a list does not take; the message says which it takes."""

    code = "usage"


class Filter(msgspec.Struct, frozen=True):
    """A parameter of a list's address that keeps some of its rows."""

    condition: str
    """The SQL condition, with one ``?`` for the value."""
    description: str
    values: tuple[str, ...] = ()
    """The values that it takes; none: every text of at most 100 characters."""
    otherwise: tuple[str, str] | None = None
    """The condition and its value where the parameter is absent."""

    def read(self, name: str, value: str | None) -> tuple[str, str] | None:
        """Return the condition and its value. Raises :class:`FilterInvalid`."""
        if not value:
            if value == "" and self.values:
                raise FilterInvalid(f"query.{name}: it is empty; leave it out.")
            return self.otherwise
        if self.values and value not in self.values:
            raise FilterInvalid(f"query.{name}: it must be one of {', '.join(self.values)}.")
        if len(value) > _LONGEST:
            raise FilterInvalid(f"query.{name}: it may have {_LONGEST} characters at most.")
        return self.condition, value

    def parameter(self, name: str) -> dict[str, Any]:
        """Return what the OpenAPI document says of it."""
        limits: dict[str, Any] = (
            {"enum": list(self.values)} if self.values else {"maxLength": _LONGEST}
        )
        return {
            "name": name,
            "in": "query",
            "required": False,
            "description": self.description,
            "schema": {"type": "string", **limits},
        }


_LONGEST = 100


class Resource(msgspec.Struct, frozen=True):
    """The rows of one table, as they are read over HTTP."""

    table: Paged
    name: str
    """What one row is called, for example ``proposal``; its plural has an ``s``."""
    scope: str
    listed: Callable[[Counter, sqlite3.Connection, Sequence[str]], list[dict[str, Any]]]
    """Returns what a list shows of the rows with these ids."""
    shown: Callable[[Counter, sqlite3.Connection, str], dict[str, Any]]
    """Returns the whole row. Raises ``NotFound``."""
    list_says: str
    show_says: str
    schema: Mapping[str, Any]
    filters: Mapping[str, Filter]


def row_schema(kind: type[Any], **further: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a table's row; ``further`` are members that are printed beside its own."""
    schema: dict[str, Any] = msgspec.json.schema_components((kind,))[1][kind.__name__]
    return {"type": "object", "properties": {**schema["properties"], **further}}


def add_reads(router: APIRouter, resource: Resource) -> None:
    """Add the two routes that read a resource: its pages, and one row."""
    activity, named = f"read {resource.name}s", f"{{{resource.name}_id}}"
    pages = {
        "type": "object",
        "required": ["items", "next"],
        "properties": {
            "items": {"type": "array", "items": dict(resource.schema)},
            "next": {"type": ["string", "null"], "description": "The cursor of the next page."},
        },
    }

    async def list_rows(
        at: At, request: Request, cursor: Cursor = "", limit: Limit = 50
    ) -> Response:
        given = request.query_params
        read = [each.read(name, given.get(name)) for name, each in resource.filters.items()]

        def look(connection: sqlite3.Connection, caller: Caller) -> dict[str, Any]:
            caller.require(resource.scope, activity)
            ids, following = select_page(
                connection,
                resource.table,
                after=read_cursor(cursor),
                limit=limit,
                terms=dict(filter(None, read)),
            )
            return page(resource.listed(at, connection, ids), following)

        return tagged(request, await at.read(look))

    async def show_row(at: At, request: Request) -> Response:
        identity = request.path_params[f"{resource.name}_id"]

        def look(connection: sqlite3.Connection, caller: Caller) -> dict[str, Any]:
            caller.require(resource.scope, activity)
            return resource.shown(at, connection, identity)

        return tagged(request, await at.read(look))

    list_rows.__doc__, show_row.__doc__ = resource.list_says, resource.show_says
    operation(
        router,
        "GET",
        "",
        f"List {resource.name}s",
        resource.scope,
        returns=pages,
        has_tag=True,
        parameters=[each.parameter(name) for name, each in resource.filters.items()],
    )(list_rows)
    article = "an" if resource.name[0] in "aeiou" else "a"
    operation(
        router,
        "GET",
        f"/{named}",
        f"Show {article} {resource.name}",
        resource.scope,
        returns=resource.schema,
        has_tag=True,
        parameters=[path_parameter(f"{resource.name}_id")],
    )(show_row)


def path_parameter(name: str) -> dict[str, Any]:
    """Return what the OpenAPI document says of a part of an address."""
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
