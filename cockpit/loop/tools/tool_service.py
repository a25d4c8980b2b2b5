"""What the screen asks of tools: a list, what is behind each, and the user's approvals.

See ``docs/reference/tools.md``, on the screen.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field

from cockpit.act.mcp_servers.listed_tools import ToolListing
from cockpit.act.own_tools.check_arguments import describe_parameters
from cockpit.act.own_tools.tool_definition import ToolDefinition
from cockpit.core.errors import NotFound
from cockpit.loop.decisions.decide_proposal import find_decider
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.loop.tools.added_tools import AddedTools
from cockpit.loop.tools.approve_tools import (
    approve_file,
    approve_server_tools,
    forget_tools,
    require_person,
)
from cockpit.loop.tools.list_tools import ToolRow, ToolState, list_rows
from cockpit.store.db.transaction import Tx


class ToolService(Struct, frozen=True):
    """The added tools of an open project. The methods raise ``CockpitError`` with text for the user."""

    added: AddedTools | None
    settings: RuntimeSettings
    listings: dict[str, ToolListing] = field(default_factory=dict)
    """What servers have listed, for as long as the service is kept."""

    async def read_rows(self) -> list[ToolRow]:
        """Return every tool, and a row for each MCP server none of whose tools is there yet."""
        added = self._require()
        rows = await added.store.read(lambda connection: list_rows(connection, added.catalog))
        for name, listing in self.listings.items():
            rows = [row for row in rows if (row.kind, row.place) != ("mcp", name)]
            rows += self._rows_of_server(
                listing, await added.store.read(added.catalog.read_approved)
            )
        for server in added.catalog.servers.values():
            if server.enabled and not any(row.place == server.name for row in rows):
                where = server.describe_place(has_sandbox=added.ground.sandbox.works)
                note = f"Not started yet. ⏎ starts it and lists its tools. It runs {where}."
                rows.append(ToolRow(server.name, "mcp", server.name, "new", note=note))
        return rows

    async def list_server(self, name: str) -> None:
        """Start an MCP server and keep what it lists."""
        self.listings[name] = await self._require().servers.list_tools(name)

    async def approve(self, row: ToolRow) -> None:
        """Approve what a row shows, as the user."""
        added = self._require()
        await added.store.write(self._require_user)
        if row.source is not None:
            await approve_file(
                added, row.place, row.file, shown_digest=row.source.digest, by="person"
            )
            return
        listed = self.listings.get(row.place)
        shown = [tool for tool in listed.tools if tool.name == row.name] if listed else []
        if not shown:
            raise NotFound(f"{row.name} is not listed; ⏎ on its server lists it.")
        await approve_server_tools(added, row.place, shown, by="person")

    async def forget(self, row: ToolRow) -> None:
        """Withdraw the approval of a row's tool, and of the others in its file, as the user."""
        added = self._require()

        def write(tx: Tx) -> None:
            self._require_user(tx)
            approved = added.catalog.read_approved(tx.connection)
            ids = [
                each.tool_id
                for each in approved
                if (each.kind, each.place) == (row.kind, row.place)
                and (each.file == row.file if row.kind == "own" else each.name == row.name)
            ]
            forget_tools(tx, ids, by="person")

        await added.store.write(write)

    def describe_server(self, row: ToolRow) -> Sequence[tuple[str, str]]:
        """Return where the MCP server of a row runs, and by which command; nothing of other tools."""
        server = self.added.catalog.servers.get(row.place) if self.added is not None else None
        if row.kind != "mcp" or server is None or self.added is None:
            return ()
        place = server.describe_place(has_sandbox=self.added.ground.sandbox.works)
        return (("runs", place), ("command", " ".join(server.command) or server.url))

    def _rows_of_server(
        self, listing: ToolListing, approved: Sequence[ToolDefinition]
    ) -> list[ToolRow]:
        digests = {each.tool_id: each.digest for each in approved}
        rows = []
        for tool in listing.tools:
            before = digests.get(tool.tool_id)
            state: ToolState = "new"
            if before is not None:
                state = "approved" if before == tool.digest else "changed"
            note = f"{tool.description} It takes: {describe_parameters(tool.parameters)}."
            rows.append(ToolRow(tool.name, "mcp", tool.place, state, note=note, approved=tool))
        return rows

    def _require(self) -> AddedTools:
        if self.added is None:
            raise NotFound("There are no tools to show here.")
        return self.added

    def _require_user(self, tx: Tx) -> None:
        require_person(find_decider(tx, self.settings))
