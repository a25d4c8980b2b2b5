"""Tools that cockpit does not bring: where from, approved or not, and their source.

Enter alone approves nothing: it asks for a second key, above the source. Specified in
``docs/reference/tools.md``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cockpit.app.host import Host
from cockpit.app.screens.lists.list_screen import ListScreen
from cockpit.core.text import pluralize
from cockpit.loop.tools.list_tools import ToolRow
from cockpit.loop.tools.tool_service import ToolService
from cockpit.loop.views.state_signs import state_sign
from widgets.text.detail import DetailRow, fields, quoted
from widgets.text.style_names import DIM, Part
from widgets.work.task_views import QueuedView

_APPROVABLE = ("new", "changed")
_FORGETTABLE = ("approved", "changed", "gone", "off")


class ToolsScreen(ListScreen[ToolRow]):
    """Every tool, with its source or schema."""

    NAME = "Tools"
    PANE = "tools"
    EMPTY = (
        "No tools yet. Write a function with @tool into .cockpit/tools/NAME.py, or add [mcp.NAME] to your"
        " configuration."
    )
    ENTER = ("approve", "list")
    QUESTIONS = {  # noqa: RUF012 -- read only
        "approve": "lets agents call exactly what is shown here",
        "forget": "withdraws the approval",
    }
    READS_FILES = True

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._service: ToolService | None = None

    async def read_rows(self) -> tuple[Sequence[ToolRow], Sequence[str]]:
        if self._service is None:
            self._service = await self.host.engine.tools()
        return await self._service.read_rows(), ()

    def describe(self) -> Sequence[Part]:
        approved = sum(row.state == "approved" for row in self.rows)
        text = f"{pluralize(len(self.rows), 'tool')}, {approved} approved"
        return [(text if self.rows else "what agents may call beside cockpit's own", DIM)]

    def verbs(self, row: ToolRow) -> Mapping[str, str]:
        if _is_server(row):
            return {"list": "start and list"}
        approve = {"approve": "approve"} if row.state in _APPROVABLE else {}
        forget = {"forget": "forget"} if row.state in _FORGETTABLE else {}
        return {**approve, **forget}

    async def do(self, verb: str, row: ToolRow) -> None:
        if self._service is None:
            return
        if verb == "list":
            await self._service.list_server(row.place)
        elif verb == "approve":
            await self._service.approve(row)
        else:
            await self._service.forget(row)

    def draw_row(self, row: ToolRow) -> QueuedView:
        look = state_sign("offer", row.state)
        place = f"MCP server {row.place}" if row.kind == "mcp" else f"{row.place}: {row.file}"
        state = "not listed" if _is_server(row) else row.state_text
        takes = row.note if row.state == "refused" else row.signature.removeprefix(row.name)
        key = f"{row.kind}:{row.place}:{row.name}"
        return QueuedView(key, takes, look.sign, look.tone, state, place, row.name)

    def draw_detail(self, row: ToolRow, detail: Any) -> Sequence[DetailRow]:
        if self._service is None:
            return ()
        parts = self._service.describe(row)
        short = [(heading, text) for heading, text in parts if "\n" not in text.strip()]
        long = [(heading, text) for heading, text in parts if "\n" in text.strip()]
        return [*fields(short), *(each for part in long for each in quoted(*part))]


def _is_server(row: ToolRow) -> bool:
    """Whether the row is a server that has not listed its tools yet."""
    return row.kind == "mcp" and row.approved is None
