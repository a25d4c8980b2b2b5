"""Tools that cockpit does not bring: where each is from, approved or not, and its source.

Listing loads no file and starts no server. Specified in ``docs/reference/tools.md``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from cockpit.collections.collection import Collection, Listed, Part, View
from cockpit.core.errors import CockpitError, NotFound
from cockpit.core.text import pluralize

if TYPE_CHECKING:
    from cockpit.loop.tools.list_tools import ToolRow


class NameShared(CockpitError):
    """Several files have a tool of this name."""

    code = "usage"


def _read(view: View) -> Listed[ToolRow]:
    # Where there is no sandbox, a call says so.
    from cockpit.loop.tools.added_tools import open_catalog
    from cockpit.loop.tools.list_tools import list_rows

    catalog = open_catalog(view.place, view.settings, has_sandbox=True)
    rows = list_rows(view.connection, catalog)
    approved = {row.place for row in rows if row.kind == "mcp"}
    remarks = [
        f"No tool of the MCP server {server.name} is approved. `cockpit trust"
        f" {server.name}` starts it and shows them."
        for server in catalog.servers.values()
        if server.enabled and server.name not in approved
    ]
    return Listed(rows, remarks)


def find_tool(rows: Sequence[ToolRow], name: str) -> ToolRow:
    """Return the tool of that name, of that file or with that alias. Raises :class:`NameShared`."""
    chosen = [row for row in rows if name in (row.name, row.file)]
    chosen = chosen or [
        row for row in rows if row.approved is not None and name in row.approved.aliases
    ]
    if not chosen:
        raise NotFound(f"There is no tool {name}.")
    places = {(row.place, row.file) for row in chosen}
    if len(places) > 1:
        names = ", ".join(sorted(f"{place}:{file}" for place, file in places))
        raise NameShared(f"Several files have {name}: {names}. Rename one of them.")
    return chosen[0]


def _place(row: ToolRow) -> str:
    return f"MCP server {row.place}" if row.kind == "mcp" else f"{row.place}: {row.file}"


def _takes(row: ToolRow) -> str:
    return row.note if row.state == "refused" else row.signature.removeprefix(row.name)


def _body(row: ToolRow) -> dict[str, Any]:
    return {
        "name": row.name,
        "kind": row.kind,
        "from": row.place,
        "file": row.file,
        "state": row.state,
        "signature": row.signature,
        "note": row.note,
        "aliases": list(row.approved.aliases) if row.approved is not None else [],
        "digest": row.source.digest if row.source is not None else "",
    }


def _document(row: ToolRow) -> dict[str, Any]:
    document = _body(row)
    if row.approved is not None:
        document["schema"] = dict(row.approved.parameters)
    if row.source is not None:
        document["source"] = row.source.source
    return document


def _detail(row: ToolRow) -> Iterator[Part]:
    yield Part(text=row.name)
    facts = [("from", _place(row)), ("state", row.state_text)]
    if row.state == "refused":
        yield Part(fields=[*facts, ("why", row.note)])
        return
    facts += [("takes", row.signature), ("says", row.note)]
    if row.kind == "own" and row.approved is not None:
        writes = row.approved.effects != "reads"
        sandbox = f"project {'writable' if writes else 'read-only'}, no network"
        facts += [("sandbox", sandbox), ("aliases", ", ".join(row.approved.aliases))]
    if row.source is not None:
        facts.append(("digest", row.source.digest))
    yield Part(fields=facts)
    if row.source is not None:
        for name, data in row.source.files.items():
            yield Part(name, text=data.decode("utf-8", "replace"))


def _count(rows: Sequence[ToolRow]) -> str:
    approved = sum(row.state == "approved" for row in rows)
    text = f"{pluralize(len(rows), 'tool')}, {approved} approved"
    return text if rows else "what agents may call beside cockpit's own"


COLLECTION: Collection[ToolRow] = Collection(
    name="tools",
    command="tools",
    title="Tools",
    summary="Manage tools of yours and of projects.",
    help="""Manage the tools that agents may call besides cockpit's own.

    They are functions in Python that `@tool` marks, and those of the MCP servers in your settings. Listing
    loads nothing and starts no server: MCP tools that you have not approved are not listed. NAME is a tool,
    an alias, a file, or an MCP server, which is started then.
    """,
    examples=(
        "cockpit tools",
        "cockpit tools count_words",
        "cockpit trust count_words",
        "cockpit trust github",
    ),
    row="NAME",
    sample="count_words",
    columns={
        "TOOL": lambda row: row.name,
        "FROM": _place,
        "STATE": lambda row: row.state_text,
        "WHAT IT TAKES": _takes,
    },
    read=_read,
    find=lambda view, name: find_tool(_read(view).rows, name),
    none="There are no tools yet. Write a function with @tool into .cockpit/tools/NAME.py, or add [mcp.NAME]"
    " to your configuration.",
    detail=lambda row: tuple(_detail(row)),
    body=_body,
    document=_document,
    key="alt+t",
    synonyms="mcp plugins",
    state=lambda row: row.state,
    headline=_count,
    reads_files=True,
)
