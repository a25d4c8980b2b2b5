"""Approve and forget tools: by the digest of what the user was shown, in one step for a file.

See ``docs/reference/tools.md``, approval.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from cockpit.access.principals import Caller
from cockpit.access.token_scopes import NotAllowed
from cockpit.act.model_tools import TOOL_RECORDS
from cockpit.act.own_tools.describe_tools import describe_file
from cockpit.act.own_tools.tool_definition import ToolDefinition
from cockpit.act.own_tools.tool_files import ToolFileRefused
from cockpit.core.errors import CockpitError, NotFound
from cockpit.loop.tools.added_tools import AddedTools
from cockpit.store.db.transaction import Tx
from cockpit.store.tools import approved_tools


class ToolChanged(CockpitError):
    """The tool is not as it was shown; nothing was approved."""

    code = "tool_changed"


def require_person(caller: Caller) -> None:
    """Raise ``NotAllowed`` unless ``caller`` is the user: no token approves a tool or runs one by hand."""
    if caller.kind != "person":
        raise NotAllowed(f"{caller.namespace} may not decide this: only the user may.")


async def approve_file(
    added: AddedTools, place: str, name: str, *, shown_digest: str, by: str
) -> tuple[ToolDefinition, ...]:
    """Approve all tools of a file as it was shown, and load it once, in the sandbox, for its schemas.

    Raises :class:`ToolChanged` where the file is not the one that was shown, ``ToolFileRefused`` where it
    cannot be used, and ``NoSandbox``; then nothing is approved.
    """
    file = await asyncio.to_thread(added.catalog.load_file, place, name)
    if file.digest != shown_digest:
        raise ToolChanged(
            f"{file.label} changed while you looked at it; nothing was approved. Look at it again."
        )
    ground = added.ground
    definitions = await describe_file(file, ground.sandbox, ground.root, ground.environment)
    for definition in definitions:
        if taken := sorted({definition.name, *definition.aliases} & set(TOOL_RECORDS)):
            raise ToolFileRefused(
                f"{file.label}: {taken[0]!r} is a tool of cockpit's own. Give yours another name."
            )

    def write(tx: Tx) -> None:
        for row in approved_tools.select_all(tx.connection):
            if row.place == place and row.definition.get("file") == name:
                approved_tools.forget(tx, row.tool_id, by=by, reason="approved anew")
        for definition in definitions:
            other = approved_tools.find(tx.connection, definition.tool_id)
            if other is not None:
                raise ToolFileRefused(
                    f"{file.label}: {definition.name!r} is a tool of {other.definition.get('file')} already."
                    " Give it another name."
                )
            approved_tools.approve(tx, definition.body(), by=by)

    await added.store.write(write)
    return definitions


async def approve_server_tools(
    added: AddedTools, server: str, shown: Sequence[ToolDefinition], *, by: str
) -> None:
    """Approve tools of an MCP server as they were shown.

    Raises :class:`ToolChanged` where the server lists one of them otherwise by now, and ``ServerFailed``.
    """
    listing = await added.servers.list_tools(server)
    current = {tool.tool_id: tool.digest for tool in listing.tools}
    for definition in shown:
        if current.get(definition.tool_id) != definition.digest:
            raise ToolChanged(
                f"The MCP server {server} describes {definition.function} otherwise by now; nothing was"
                " approved. Look at it again."
            )

    def write(tx: Tx) -> None:
        for definition in shown:
            approved_tools.approve(tx, definition.body(), by=by)

    await added.store.write(write)


def forget_tools(tx: Tx, tool_ids: Sequence[str], *, by: str, reason: str = "") -> None:
    """Withdraw approvals. Raises :class:`NotFound`; then nothing changed."""
    for tool_id in tool_ids:
        if not approved_tools.forget(tx, tool_id, by=by, reason=reason):
            raise NotFound(f"{tool_id} is not approved.")
