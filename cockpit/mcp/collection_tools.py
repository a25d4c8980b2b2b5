"""The collections of the project for external agents, which only read them.

See ``docs/reference/collections.md``.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeVar

from msgspec import Struct

from cockpit.collections.collection import Collection, View
from cockpit.collections.registry import NAMES, load_served
from cockpit.core.failure_lines import clip_middle
from cockpit.core.read_record import describe
from cockpit.core.secrets import mask, mask_value
from cockpit.mcp.call_dispatcher import ClientConnection, Dispatcher, LoopTool
from cockpit.mcp.render_packet import render_page

T = TypeVar("T")
MOST_SHOWN = 40_000
"""Characters of a row that is shown."""


class ListCollection(Struct, frozen=True):
    """Name a collection, and filters of its command."""

    collection: Annotated[str, describe(", ".join(NAMES))]
    filters: Annotated[Mapping[str, Any] | None, describe("by name")] = None
    offset: int = 0


class ShowCollection(Struct, frozen=True):
    """Name a row of a collection."""

    collection: str
    name: Annotated[str, describe("as the list has it")]


async def _list(
    dispatcher: Dispatcher, client: ClientConnection, arguments: ListCollection
) -> dict[str, Any]:
    def read(collection: Collection[Any], view: View) -> dict[str, Any]:
        filters = collection.read_filters(arguments.filters or {})
        listed = collection.list_rows(view, **filters)
        rows = [mask_value(collection.body(row)) for row in listed.rows]
        return {
            **render_page("rows", rows, arguments.offset),
            **({"remarks": [mask(each) for each in listed.remarks]} if listed.remarks else {}),
        }

    return await _read(dispatcher, client, arguments.collection, read)


async def _show(
    dispatcher: Dispatcher, client: ClientConnection, arguments: ShowCollection
) -> dict[str, Any]:
    def read(collection: Collection[Any], view: View) -> dict[str, Any]:
        row = mask_value(collection.show_row(collection.find_row(view, arguments.name)))
        text = json.dumps(row, ensure_ascii=False)
        return {"row": row if len(text) <= MOST_SHOWN else clip_middle(text, MOST_SHOWN)}

    return await _read(dispatcher, client, arguments.collection, read)


async def _read(
    dispatcher: Dispatcher,
    client: ClientConnection,
    name: str,
    read: Callable[[Collection[Any], View], T],
) -> T:
    caller = await dispatcher.authenticate(client)
    collection = load_served(name, caller)
    settings, store = dispatcher.settings, dispatcher.store

    def look(connection: sqlite3.Connection) -> T:
        view = View(dispatcher.place, connection, store.clock, lambda: settings, settings.user_dir)
        return read(collection, view)

    return await store.read(look)


COLLECTION_TOOLS = (
    LoopTool(
        "list_collection",
        "all",
        "List rows of the project: its guards, rules, notes, events and the like.",
        ListCollection,
        _list,
    ),
    LoopTool(
        "show_collection",
        "all",
        "Show one row of a collection, with everything that is recorded of it.",
        ShowCollection,
        _show,
    ),
)
