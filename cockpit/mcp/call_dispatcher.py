"""The dispatcher: reads a call's arguments and runs the tool's function in the right place.

Work tools that read run on a reader's thread, those that write in a transaction, and loop tools with the
engine, which opens for the first of them: most clients only use the backlog. See ``docs/reference/mcp.md``.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from cockpit.access.capability_tokens import holder
from cockpit.access.principals import AGENT, Caller
from cockpit.access.token_scopes import AGENT_SCOPES, PROPOSE
from cockpit.backlog.tools.work_tool import Tier, WorkTool
from cockpit.core.clock import format_time
from cockpit.core.errors import CockpitError
from cockpit.core.project_paths import ProjectPaths
from cockpit.core.read_record import InvalidRecord, read_record
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.refused_requests import RefusedRequests
from cockpit.store.tools import approved_tools

if TYPE_CHECKING:
    from cockpit.act.own_tools.tool_definition import ToolDefinition
    from cockpit.loop.tools.tool_catalog import ToolCatalog
    from cockpit.loop.wave_context import Engine
    from cockpit.mcp.call_result import CallResult
    from cockpit.mcp.client_session import ClientSession


class WrongArguments(CockpitError):
    """Arguments that a tool does not take; the message lists those that it does."""

    code = "usage"


PREFIX = "own_"
"""What the names of the tools begin with that are functions of the user or the project."""
LOCAL_AGENT = Caller(f"{AGENT}mcp", AGENT_SCOPES)
"""The caller of a client on this machine that has no token."""


class ClientConnection(Struct, frozen=True):
    """One client of the server."""

    token: str = ""
    """The client's token, or empty."""
    name: str = "agent"
    """The name that the client gives itself; shown, never trusted."""
    http_session: str = ""
    """The HTTP session's id, which tells two clients of the same name apart; empty over stdio."""

    def authenticate(self, connection: sqlite3.Connection, now: str) -> Caller:
        """Return the caller at the time ``now``.

        Call it in the transaction that acts for the caller. Raises ``TokenRefused``.
        """
        return holder(connection, self.token, now) if self.token else LOCAL_AGENT


class LoopTool(Struct, frozen=True):
    """A tool that needs the loop: it proposes, or reads what a wave was shown."""

    name: str
    tier: Tier
    """The smallest set of tools that the tool belongs to: ``core`` ⊂ ``standard`` ⊂ ``all``."""
    description: str
    parameters: type[Any]
    """The frozen record that its arguments are read into."""
    run: Callable[[Dispatcher, ClientConnection, Any], Awaitable[Any]]


class OwnTools:
    """The approved functions of one project. What reads them is loaded once there are some."""

    def __init__(self, store: Store, place: ProjectPaths, settings: RuntimeSettings) -> None:
        self._store = store
        self._place = place
        self._settings = settings
        self._catalog: ToolCatalog | None = None

    def list_tools(self) -> list[dict[str, Any]]:
        """Return them as the protocol lists tools, by name."""
        from cockpit.act.own_tools.tool_definition import describe_for_model

        return [
            {
                "description": f"{describe_for_model(each)}\nThe user decides about each call.",
                "inputSchema": dict(each.parameters),
                "name": f"{PREFIX}{each.name}",
            }
            for each in sorted(self._read(), key=lambda each: each.name)
        ]

    def find(self, name: str) -> ToolDefinition | None:
        """Return the tool that a client calls ``name``, or None."""
        if not name.startswith(PREFIX):
            return None
        bare = name.removeprefix(PREFIX)
        return next((each for each in self._read() if bare == each.name), None)

    def _read(self) -> tuple[ToolDefinition, ...]:
        if not self._store.read_now(approved_tools.has_any):
            return ()
        if self._catalog is None:
            from cockpit.loop.tools.added_tools import open_catalog

            # Where there is no sandbox, a call says so.
            self._catalog = open_catalog(self._place, self._settings, has_sandbox=True)
        usable = self._store.read_now(self._catalog.read_usable)
        return tuple(each for each in usable if each.kind == "own")


class Dispatcher:
    """Runs tools for the clients of one server.

    Create it on the protocol's event loop; end it with :meth:`close`.
    """

    def __init__(self, store: Store, place: ProjectPaths, settings: RuntimeSettings) -> None:
        self.store = store
        self.place = place
        self.settings = require_user_decisions(settings)
        self._engine: Engine | None = None
        self._opening = asyncio.Lock()
        self._resources = AsyncExitStack()
        self.own_tools = OwnTools(store, place, settings)
        self.refused = RefusedRequests(store, "mcp")
        self._sessions: dict[tuple[str, str, str], ClientSession] = {}

    async def engine(self) -> Engine:
        """Return the engine, which opens for the first caller."""
        async with self._opening:
            if self._engine is None:
                from cockpit.loop.runtime import runtime_over

                runtime = await self._resources.enter_async_context(
                    runtime_over(self.store, self.place, self.settings)
                )
                self._engine = runtime.engine
            return self._engine

    async def call(
        self,
        tool: WorkTool | LoopTool,
        client: ClientConnection,
        arguments: Mapping[str, Any] | None,
    ) -> Any:
        """Run ``tool`` for ``client``; returns a JSON value.

        Raises :class:`WrongArguments` and the tool's ``CockpitError``, with a message for the agent.
        """
        try:
            read = read_record(tool.parameters, arguments or {}, name=tool.name)
        except InvalidRecord as error:
            raise WrongArguments(str(error)) from error
        if isinstance(tool, LoopTool):
            return await tool.run(self, client, read)

        def run(store: Tx | sqlite3.Connection, connection: sqlite3.Connection) -> Any:
            caller = client.authenticate(connection, now)
            return tool.run(
                store,
                caller,
                read,
                session_id=self.session_id(caller, client),
            )

        now = format_time(self.store.clock.now())
        if tool.writes:
            return await self.store.write(lambda tx: run(tx, tx.connection))
        return await self.store.read(lambda connection: run(connection, connection))

    async def call_own(
        self,
        definition: ToolDefinition,
        client: ClientConnection,
        arguments: Mapping[str, Any] | None,
        wait_s: float,
    ) -> CallResult:
        """Propose a call of an approved function of the user or the project.

        Raises ``NotAllowed``, ``MalformedCall`` and ``StillWaiting``.
        """
        caller = await self.authenticate(client)
        caller.require(PROPOSE, "propose anything")

        session = self.session(caller, client)
        return await session.call(await self.engine(), definition.name, arguments or {}, wait_s)

    async def authenticate(self, client: ClientConnection) -> Caller:
        """Return who the client is now. Raises ``TokenRefused``."""
        now = format_time(self.store.clock.now())
        return await self.store.read(lambda connection: client.authenticate(connection, now))

    def session_id(self, caller: Caller, client: ClientConnection) -> str:
        """Return the id of the client's session, or '' before its first proposal."""
        session = self._sessions.get(_session_key(caller, client))
        return "" if session is None else session.session_id

    def session(self, caller: Caller, client: ClientConnection) -> ClientSession:
        """Return the client's session, the same one for every call on a connection."""
        from cockpit.mcp.client_session import ClientSession

        return self._sessions.setdefault(
            _session_key(caller, client), ClientSession(caller.namespace, client.name)
        )

    async def close(self) -> None:
        """Stop everything that runs for clients; their proposals stay in the queue."""
        for session in self._sessions.values():
            await session.stop()
        await self._resources.aclose()


def require_user_decisions(settings: RuntimeSettings) -> RuntimeSettings:
    """Return the settings for external agents: the user decides on every proposal.

    The agent starts the server and so writes its environment: automatic approval is not read from there.
    """
    rules = replace(settings.adaptation, auto="never")
    return replace(settings, policy="ask", adaptation=rules)


def _session_key(caller: Caller, client: ClientConnection) -> tuple[str, str, str]:
    return (caller.namespace, client.name, client.http_session)
