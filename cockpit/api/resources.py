"""Tables as resources: pages of their rows, newest first, and one row with its version.

See ``docs/reference/http.md``, versions, pages and repeats.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import msgspec
from starlette.responses import Response

from cockpit.access.principals import Caller
from cockpit.api.answers import page, read_cursor, tagged
from cockpit.api.callers import Counter
from cockpit.api.operations import Topic
from cockpit.core.read_record import describe
from cockpit.store.db.keyset_page import Paged, select_page


class PageQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which page of a list is read. Further fields of a table's own record are columns of it."""

    cursor: Annotated[
        str, msgspec.Meta(max_length=400), describe("The `next` of the page before.")
    ] = ""
    limit: Annotated[int, msgspec.Meta(ge=1, le=200), describe("How many at most.")] = 50

    def terms(self) -> dict[str, str]:
        """Return conditions in SQL, with one ``?`` each, and their values."""
        given = msgspec.structs.asdict(self)
        names = [name for name in given if name not in ("cursor", "limit")]
        return {f"{name}=?": str(given[name]) for name in names if given[name]}


class Resource(msgspec.Struct, frozen=True):
    """The rows of one table, as they are read over HTTP."""

    table: Paged
    name: str
    """What one row is called, for example ``proposal``; its plural has an ``s``."""
    scope: str
    query: type[PageQuery]
    listed: Callable[[Counter, sqlite3.Connection, Sequence[str]], list[dict[str, Any]]]
    """Returns what a list shows of the rows with these ids."""
    shown: Callable[[Counter, sqlite3.Connection, str], dict[str, Any]]
    """Returns the whole row. Raises ``NotFound``."""
    list_says: str
    show_says: str
    schema: Mapping[str, Any]


def row_schema(kind: type[Any], **further: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a table's row; ``further`` are members that are printed beside its own."""
    schema: dict[str, Any] = msgspec.json.schema_components((kind,))[1][kind.__name__]
    return {"type": "object", "properties": {**schema["properties"], **further}}


def add_reads(topic: Topic, resource: Resource) -> None:
    """Add the two operations that read a resource: its pages, and one row."""
    activity = f"read {resource.name}s"
    pages = {
        "type": "object",
        "required": ["items", "next"],
        "properties": {
            "items": {"type": "array", "items": dict(resource.schema)},
            "next": {"type": ["string", "null"], "description": "The cursor of the next page."},
        },
    }

    @topic.operation(
        "GET",
        "",
        f"List {resource.name}s",
        resource.scope,
        returns=pages,
        query=resource.query,
        has_tag=True,
        says=resource.list_says,
    )
    async def list_rows(at: Counter, query: PageQuery) -> Response:
        def look(connection: sqlite3.Connection, caller: Caller) -> dict[str, Any]:
            caller.require(resource.scope, activity)
            ids, following = select_page(
                connection,
                resource.table,
                after=read_cursor(query.cursor),
                limit=query.limit,
                terms=query.terms(),
            )
            return page(resource.listed(at, connection, ids), following)

        return tagged(at.request, await at.read(look))

    @topic.operation(
        "GET",
        f"/{{{resource.name}_id}}",
        f"Show a {resource.name}",
        resource.scope,
        returns=resource.schema,
        has_tag=True,
        says=resource.show_says,
    )
    async def show_row(at: Counter, **named: str) -> Response:
        def look(connection: sqlite3.Connection, caller: Caller) -> dict[str, Any]:
            caller.require(resource.scope, activity)
            return resource.shown(at, connection, named[f"{resource.name}_id"])

        return tagged(at.request, await at.read(look))
