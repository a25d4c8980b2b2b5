"""The SDK's own client, connected to the server in this process."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from acp import PROTOCOL_VERSION, connect_to_agent, text_block
from acp.schema import AllowedOutcome, DeniedOutcome, RequestPermissionResponse
from commands.cli_world import Project

from cockpit.acp_server.run_server import serve_streams
from cockpit.commands.servers.acp import load_wording, project_opener

PATIENCE_S = 60.0
Choose = Callable[[Any], str | None]


def allow(_: Any) -> str | None:
    return "allow"


@dataclass
class Client:
    """What the user of an editor sees, and how they answer."""

    choose: Choose = allow
    """The id of the option to pick for a tool call; None closes the question."""
    updates: list[Any] = field(default_factory=list)
    questions: list[Any] = field(default_factory=list)
    options: list[Any] = field(default_factory=list)
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    hold: asyncio.Event | None = None
    """Set: the user takes their time until this is set."""

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **_: Any
    ) -> RequestPermissionResponse:
        self.questions.append(tool_call)
        self.options = options
        self.asked.set()
        if self.hold is not None:
            await self.hold.wait()
        option = self.choose(tool_call)
        if option is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(
            outcome=AllowedOutcome(outcome="selected", option_id=option)
        )

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(update)

    def on_connect(self, conn: Any) -> None:
        pass

    def said(self, kind: str = "agent_message_chunk") -> str:
        return "".join(
            update.content.text for update in self.updates if update.session_update == kind
        )

    def calls(self) -> dict[str, dict[str, Any]]:
        """The tool calls as they are at the end, by id."""
        calls: dict[str, dict[str, Any]] = {}
        for update in self.updates:
            if update.session_update in ("tool_call", "tool_call_update"):
                changes = update.model_dump(exclude_none=True, exclude={"session_update"})
                calls.setdefault(update.tool_call_id, {}).update(changes)
        return calls

    async def until(self, ready: Callable[[], Any]) -> None:
        """Wait until something that the server sends has come."""
        async with asyncio.timeout(PATIENCE_S):
            while not ready():
                await asyncio.sleep(0.01)


@dataclass
class Editor:
    """A client with its connection and the server at its other end."""

    client: Client
    connection: Any
    project: Project
    vanish: Callable[[], Awaitable[object]]
    """Closes the client's end, and waits until the server has ended."""

    async def open(self) -> str:
        return str((await self.connection.new_session(cwd=str(self.project.root))).session_id)

    async def prompt(self, session: str, text: str) -> Any:
        async with asyncio.timeout(PATIENCE_S):
            return await self.connection.prompt(session_id=session, prompt=[text_block(text)])


async def greet(connection: Any) -> None:
    async with asyncio.timeout(PATIENCE_S):
        await connection.initialize(protocol_version=PROTOCOL_VERSION)


@asynccontextmanager
async def connect(
    project: Project,
    *,
    model: str | None = None,
    approve: str | None = None,
    client: Client | None = None,
) -> AsyncIterator[Editor]:
    """Serve the client in this process, and greet the server."""
    client = client or Client()
    near, far = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=near)
    opener = project_opener({"[model] name": model, "[approval] policy": approve})
    streams = await asyncio.open_connection(sock=far)
    serving = asyncio.create_task(serve_streams(opener, load_wording(), print, *streams))

    async def vanish() -> None:
        writer.close()
        async with asyncio.timeout(PATIENCE_S):
            await serving

    connection = connect_to_agent(client, writer, reader)
    try:
        await greet(connection)
        yield Editor(client, connection, project, vanish)
    finally:
        await vanish()
        await connection.close()
