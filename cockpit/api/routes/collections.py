"""Collections: the rows of each kind, and one row, at the same two addresses for all of them.

See ``docs/reference/collections.md``.
"""

from __future__ import annotations

import sqlite3
from typing import Any

import msgspec
from starlette.responses import Response

from cockpit.access.principals import Caller
from cockpit.access.token_scopes import READ
from cockpit.api.answers import page, read_cursor, tagged
from cockpit.api.callers import Counter
from cockpit.api.operations import Topic, read_query
from cockpit.api.resources import PageQuery, Resource
from cockpit.api.routes import chains, proposals, sessions, tasks
from cockpit.collections.collection import View
from cockpit.collections.registry import NAMES, PLAIN_NAMES, load_collection, load_served
from cockpit.core.errors import NotFound
from cockpit.core.secrets import mask_value
from cockpit.store.db.keyset_page import select_page

topic = Topic("collections", "/api")

RESOURCES: dict[str, Resource] = {
    each.table: each
    for each in (proposals.RESOURCE, sessions.RESOURCE, tasks.RESOURCE, chains.RESOURCE)
}
"""Those that have pages, versions and operations of their own that change them."""
_PAGE = {
    "type": "object",
    "required": ["items", "next"],
    "properties": {
        "items": {"type": "array", "items": {"type": "object"}},
        "next": {"type": ["string", "null"], "description": "The cursor of the next page."},
        "remarks": {"type": "array", "items": {"type": "string"}},
    },
}


def _define_query() -> type[PageQuery]:
    """Return the record of what all lists take, each of which takes some of it."""
    named: dict[str, Any] = {}
    for resource in RESOURCES.values():
        named |= dict.fromkeys(set(resource.query.__struct_fields__) - {"cursor", "limit"}, str)
    for collection in map(load_collection, PLAIN_NAMES):
        for each in collection.filters:
            if each.kind != "number":
                named[each.name] = bool if each.kind == "flag" else str
    fields = [
        (name, kind | msgspec.UnsetType, msgspec.UNSET) for name, kind in sorted(named.items())
    ]
    query: Any = msgspec.defstruct("Query", fields, bases=(PageQuery,), frozen=True, kw_only=True)
    return query  # type: ignore[no-any-return]


def scope_of(path: str) -> str:
    """Return the scope that the address of a collection needs."""
    name = path.removeprefix(f"{topic.prefix}/").partition("/")[0]
    if name in RESOURCES:
        return RESOURCES[name].scope
    return load_collection(name).scope if name in NAMES else ""


@topic.operation(
    "GET",
    "/{collection}",
    "List the rows of a collection",
    READ,
    returns=_PAGE,
    query=_define_query(),
    has_tag=True,
)
async def list_rows(at: Counter, query: PageQuery, collection: str) -> Response:
    """The newest first where they have a time. A list takes the filters of its command.

    Tasks and chains need ``work.read``, others what ``docs/reference/collections.md`` says.
    """
    resource = RESOURCES.get(collection)
    if resource is not None:
        return await _list_page(at, resource)
    given = {
        name: value
        for name, value in msgspec.structs.asdict(query).items()
        if name not in ("cursor", "limit") and value is not msgspec.UNSET
    }

    def look(connection: sqlite3.Connection, caller: Caller) -> dict[str, Any]:
        described = load_served(collection, caller)
        filters = described.read_filters(given)
        listed = described.list_rows(_view(at, connection), **filters)
        rows = [mask_value(described.body(each)) for each in listed.rows[: query.limit]]
        return {**page(rows, None), "remarks": list(listed.remarks)}

    return tagged(at.request, await at.read(look))


@topic.operation(
    "GET",
    "/{collection}/{name}",
    "Show a row of a collection",
    READ,
    returns={"type": "object"},
    has_tag=True,
)
async def show_row(at: Counter, collection: str, name: str) -> Response:
    """Everything that is recorded of it."""

    def look(connection: sqlite3.Connection, caller: Caller) -> dict[str, Any]:
        resource = RESOURCES.get(collection)
        if resource is not None:
            caller.require(resource.scope, f"read {collection}")
            whole: dict[str, Any] = resource.shown(at, connection, name)
            return whole
        described = load_served(collection, caller)
        shown: dict[str, Any] = mask_value(
            described.show_row(described.find_row(_view(at, connection), name))
        )
        return shown

    return tagged(at.request, await at.read(look))


async def _list_page(at: Counter, resource: Resource) -> Response:
    query = read_query(at.request, resource.query)

    def look(connection: sqlite3.Connection, caller: Caller) -> dict[str, Any]:
        caller.require(resource.scope, f"read {resource.table}")
        after = read_cursor(query.cursor)
        ids, following = select_page(
            connection, resource.table, after=after, limit=query.limit, terms=query.terms()
        )
        return page(resource.listed(at, connection, ids), following)

    return tagged(at.request, await at.read(look))


def _view(at: Counter, connection: sqlite3.Connection) -> View:
    if at.project.place is None:
        raise NotFound(
            "This server has no checkout, and so only proposals, sessions, tasks and chains."
        )
    return View(
        at.project.place, connection, at.store.clock, lambda: at.settings, at.settings.user_dir
    )
