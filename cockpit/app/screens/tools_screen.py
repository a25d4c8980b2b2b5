"""Tools that cockpit does not bring, over the whole screen: where from, approved or not, and their source.

Enter alone approves nothing: it asks for a second key, under the source. Specified in
``docs/reference/tools.md``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from cockpit.app.actions.action import Action
from cockpit.app.host import Host
from cockpit.app.screens.backlog_screen import BacklogScreen
from cockpit.core.errors import CockpitError
from cockpit.core.text import pluralize
from cockpit.loop.tools.list_tools import ToolRow
from cockpit.loop.tools.tool_desk import ToolDesk
from widgets.text.tone import ACCENT, DIM, STRONG, Part, block, line
from widgets.views import KeyHintView
from widgets.work.queue_list import QueueList
from widgets.work.task_card_views import Tone
from widgets.work.task_views import QueuedView

_SIGNS: dict[str, tuple[str, Tone]] = {
    "approved": ("◆", "good"),
    "new": ("◇", "accent"),
    "changed": ("◇", "warn"),
    "gone": ("·", "dim"),
    "off": ("·", "dim"),
    "refused": ("✘", "bad"),
}
_BACK = KeyHintView("esc", "back")
_QUESTIONS = {
    "approve": "y lets agents call exactly what is shown here, any other key does not",
    "forget": "y withdraws the approval, any other key does not",
}
_APPROVABLE = ("new", "changed")
_FORGETTABLE = ("approved", "changed", "gone", "off")


class ToolsScreen(BacklogScreen):
    """Every tool, the one under the cursor with its source or schema below."""

    NAME = "Tools"
    BINDINGS = [  # noqa: RUF012 -- Textual's way
        Binding("x", "ask('forget')", "forget", show=False),
        Binding("ctrl+down,J", "scroll(1)", "source down", show=False),
        Binding("ctrl+up,K", "scroll(-1)", "source up", show=False),
    ]

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._list = QueueList(
            empty="No tools yet. Write a function with @tool into .cockpit/tools/NAME.py, or add"
            " [mcp.NAME] to your configuration."
        )
        self._detail = Static(id="tool-detail")
        self._scroll = VerticalScroll(self._detail, id="tool-source", can_focus=False)
        self._desk: ToolDesk | None = None
        self._rows: dict[str, ToolRow] = {}
        self._question = ("", "")
        """Verb and tool that wait for the second key."""
        self._requested = self._drawn = -1
        self._reading = False

    def compose(self) -> ComposeResult:
        yield self.headline
        yield self._list
        yield self._scroll
        yield self.bar

    @property
    def body(self) -> QueueList:
        return self._list

    @property
    def task_id(self) -> str:
        return ""

    @property
    def tool(self) -> ToolRow | None:
        """The tool under the cursor."""
        row = self._list.at_cursor
        return None if row is None else self._rows.get(row.key)

    def head(self) -> tuple[str, Sequence[Part]]:
        approved = sum(row.state == "approved" for row in self._rows.values())
        text = f"{pluralize(len(self._rows), 'tool')}, {approved} approved"
        return self.NAME, [
            (text if self._rows else "what agents may call beside cockpit's own", DIM)
        ]

    def update_hints(self) -> None:
        verb, _ = self._question
        tool = self.tool
        hints = []
        if verb:
            hints.append(KeyHintView("y", verb))
        elif tool is not None:
            if _is_server(tool):
                hints.append(KeyHintView("⏎", "start and list"))
            elif tool.state in _APPROVABLE:
                hints.append(KeyHintView("⏎", "approve"))
            if tool.state in _FORGETTABLE:
                hints.append(KeyHintView("x", "forget"))
            hints.append(KeyHintView("J K", "scroll"))
        self.bar.show([*hints, _BACK])

    # Keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return False for actions on tasks, of which this screen has none."""
        if action in ("do", "pane_do") and self._actions.get(parameters[0]).pane == "tasks":
            return False
        return super().check_action(action, parameters)

    def valid_actions(self) -> Iterable[Action[Host]]:
        """Return the actions that the palette lists now."""
        return [action for action in super().valid_actions() if action.pane != "tasks"]

    def on_key(self, event: events.Key) -> None:
        """Take the second key, whatever it is."""
        verb, key = self._question
        if not verb:
            return
        self._question = ("", "")
        tool = self._rows.get(key)
        if event.key == "y" and tool is not None:
            event.stop()
            self._decide(verb, tool)
        self._draw_detail()
        self.update_hints()

    def on_queue_list_opened(self, event: QueueList.Opened) -> None:
        """List a server, or ask for the second key of an approval."""
        event.stop()
        tool = self.tool
        if tool is None:
            return
        if _is_server(tool):
            self.host.request(lambda: self._list_server(tool.place))
        elif tool.state in _APPROVABLE:
            self.action_ask("approve")

    def action_ask(self, verb: str) -> None:
        """Ask for the second key."""
        tool = self.tool
        allowed = _APPROVABLE if verb == "approve" else _FORGETTABLE
        if tool is not None and tool.state in allowed and not _is_server(tool):
            self._question = (verb, _key(tool))
            self._draw_detail()
            self.update_hints()

    def action_scroll(self, step: int) -> None:
        """Scroll the source by a few lines."""
        self._scroll.scroll_relative(y=step * 5, animate=False)

    def on_queue_list_moved(self) -> None:
        """Show another tool."""
        if (tool := self.tool) is not None and self._question[1] == _key(tool):
            return  # the list was drawn again
        self._question = ("", "")
        self._scroll.scroll_home(animate=False)
        self._draw_detail()
        self.update_hints()

    def _decide(self, verb: str, tool: ToolRow) -> None:
        async def decide() -> None:
            desk = await self._open_desk()
            await (desk.approve(tool) if verb == "approve" else desk.forget(tool))
            await self._read()

        self.host.request(decide)

    async def _list_server(self, name: str) -> None:
        await (await self._open_desk()).list_server(name)
        await self._read()

    # Drawing

    def paint(self) -> None:
        super().paint()
        self._requested = self.host.state.seq
        if self._requested != self._drawn and not self._reading and self._list.is_attached:
            self._reading = True
            self.host.run_in_background(self._read_and_draw())

    def redraw(self) -> None:
        """Do nothing: tools do not depend on the backlog; :meth:`paint` reads them."""

    async def _open_desk(self) -> ToolDesk:
        if self._desk is None:
            self._desk = await self.host.engine.tools()
        return self._desk

    async def _read_and_draw(self) -> None:
        """Read until the newest state is drawn."""
        try:
            while self.is_attached and self._requested != self._drawn:
                requested = self._requested
                await self._read()
                self._drawn = requested
        except CockpitError as error:
            self._drawn = self._requested
            self.host.show_error(str(error))
        finally:
            self._reading = False
        if self.is_attached:
            self.paint()

    async def _read(self) -> None:
        rows = await (await self._open_desk()).read_rows()
        self._rows = {_key(row): row for row in rows}
        self._list.show([_view(row) for row in rows])
        if self.is_attached:
            self._draw_detail()

    def _draw_detail(self) -> None:
        tool, lines = self.tool, list[Content]()
        if tool is not None and self._desk is not None:
            verb, key = self._question
            if key == _key(tool):
                lines.append(line((_QUESTIONS[verb], ACCENT)))
            for heading, text in self._desk.describe(tool):
                lines += _part(heading, text)
        self._detail.update(Content("\n").join(lines))


def _is_server(tool: ToolRow) -> bool:
    """Whether the row is a server that has not listed its tools yet."""
    return tool.kind == "mcp" and tool.approved is None


def _key(tool: ToolRow) -> str:
    return tool.name if tool.kind == "mcp" else f"{tool.place}:{tool.name}"


def _view(tool: ToolRow) -> QueuedView:
    sign, tone = _SIGNS[tool.state]
    place = f"MCP server {tool.place}" if tool.kind == "mcp" else f"{tool.place}: {tool.file}"
    state = "not listed" if _is_server(tool) else tool.state_text
    takes = tool.note if tool.state == "refused" else tool.signature.removeprefix(tool.name)
    return QueuedView(_key(tool), takes, sign, tone, state, place)


def _part(heading: str, text: str) -> list[Content]:
    """Draw a part: on one line, or its lines behind a bar, so that no text passes for cockpit's own."""
    if "\n" not in text.strip():
        return [line((f"{heading:<10}", DIM), text)]
    lines = (Content.assemble(("│ ", DIM), block(each)) for each in text.splitlines())
    return [line((heading, STRONG)), *lines]
