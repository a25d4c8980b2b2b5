"""The list of tools, which starts MCP servers and loads files in the sandbox once they are approved.

Enter alone approves nothing: it asks for a second key, above the source. Specified in
``docs/reference/tools.md``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from cockpit.app.host import Host
from cockpit.app.screens.lists.collection_screen import CollectionScreen
from cockpit.collections.collection import Collection, Part
from cockpit.loop.tools.list_tools import ToolRow
from cockpit.loop.tools.tool_service import ToolService
from widgets.work.task_views import QueuedView

_APPROVABLE = ("new", "changed")
_FORGETTABLE = ("approved", "changed", "gone", "off")


class ToolsScreen(CollectionScreen):
    """Every tool, with its source or schema."""

    QUESTIONS = {  # noqa: RUF012 -- read only
        "approve": "lets agents call exactly what is shown here",
        "forget": "withdraws the approval",
    }

    def __init__(self, host: Host, collection: Collection[ToolRow]) -> None:
        super().__init__(host, collection)
        self.ENTER, self.READ_FIRST = ("approve", "list"), ("approve",)
        self.QUESTIONS = type(self).QUESTIONS
        self._service: ToolService | None = None

    async def _open_service(self) -> ToolService:
        if self._service is None:
            self._service = await self.host.engine.tools()
        return self._service

    async def read_rows(self) -> tuple[Sequence[ToolRow], Sequence[str]]:
        service = await self._open_service()
        return (
            await super().read_rows() if service.added is None else (await service.read_rows(), ())
        )

    async def read_detail(self, row: ToolRow) -> Sequence[Part]:
        running = (await self._open_service()).describe_server(row)
        return (*self.collection.describe(row), Part(fields=running))

    def verbs(self, row: ToolRow) -> Mapping[str, str]:
        if _is_server(row):
            return {"list": "start and list"}
        approve = {"approve": "approve"} if row.state in _APPROVABLE else {}
        forget = {"forget": "forget"} if row.state in _FORGETTABLE else {}
        return {**approve, **forget}

    async def do(self, verb: str, row: ToolRow) -> None:
        service = await self._open_service()
        if verb == "list":
            await service.list_server(row.place)
        elif verb == "approve":
            await service.approve(row)
        else:
            await service.forget(row)

    def draw_row(self, row: ToolRow) -> QueuedView:
        view = super().draw_row(row)
        key = f"{row.kind}:{row.place}:{row.name}"
        return replace(view, key=key, state="not listed" if _is_server(row) else view.state)


def _is_server(row: ToolRow) -> bool:
    """Whether the row is a server that has not listed its tools yet."""
    return row.kind == "mcp" and row.approved is None
