"""Tables as resources: how pages of their rows, newest first, and one row are read.

See ``docs/reference/http.md``, versions, pages and repeats.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import msgspec

from cockpit.api.callers import Counter
from cockpit.core.read_record import describe
from cockpit.store.db.keyset_page import Paged


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
    """Also its name in addresses."""
    scope: str
    query: type[PageQuery]
    listed: Callable[[Counter, sqlite3.Connection, Sequence[str]], list[dict[str, Any]]]
    """Returns what a list shows of the rows with these ids."""
    shown: Callable[[Counter, sqlite3.Connection, str], dict[str, Any]]
    """Returns the whole row. Raises ``NotFound``."""


def row_schema(kind: type[Any], **further: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a table's row; ``further`` are members that are printed beside its own."""
    schema: dict[str, Any] = msgspec.json.schema_components((kind,))[1][kind.__name__]
    return {"type": "object", "properties": {**schema["properties"], **further}}
