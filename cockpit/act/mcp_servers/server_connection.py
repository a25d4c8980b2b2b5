"""One connection to an MCP server: opened late, listed before each call, ended as a whole.

The kept SDK speaks the protocol. It is imported here, when the first server is needed: that takes most of a
second. See ``docs/reference/tools.md``, MCP servers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from cockpit.access.process_group import end_group
from cockpit.act.mcp_servers.listed_tools import MAX_TOOLS, ToolListing, read_listing
from cockpit.act.mcp_servers.server_process import ServerProcess, run_server
from cockpit.act.mcp_servers.server_settings import McpServer
from cockpit.act.own_tools.tool_definition import clean_text
from cockpit.act.sandbox.bubblewrap import Sandbox
from cockpit.core.errors import CockpitError

_MAX_PAGES = 20


class ServerFailed(CockpitError):
    """A server does not start, does not answer, or broke off. ``maybe``: a call may have had its effect."""

    code = "mcp_server"

    def __init__(self, message: str, *, maybe: bool = False) -> None:
        super().__init__(message)
        self.maybe = maybe


class CallRefused(CockpitError):
    """The server answered the call with an error of the protocol: it did not run it."""

    code = "mcp_refused"


class ServerConnection:
    """A running server. Every method raises :class:`ServerFailed` once it has ended."""

    def __init__(
        self,
        server: McpServer,
        sandbox: Sandbox,
        root: Path,
        environment: Mapping[str, str],
        variables: Mapping[str, str],
    ) -> None:
        self.server = server
        self._sandbox = sandbox
        self._root = root
        self._environment = {
            **environment,
            **{name: variables[name] for name in server.env if name in variables},
        }
        self._variables = variables
        self._session: Any = None
        self._process: ServerProcess | None = None
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._failure = ""

    @property
    def is_open(self) -> bool:
        """Whether it can be called."""
        return self._task is not None and not self._task.done() and not self._failure

    def find_secrets(self) -> tuple[tuple[str, str], ...]:
        """Return the values of the variables that the server gets, with their names: never to be shown."""
        names = {*self.server.env, *self.server.headers.values()}
        return tuple(
            (value, name)
            for name in sorted(names)
            if len(value := self._variables.get(name, "")) >= 6
        )

    async def open(self) -> None:
        """Start the server and shake hands."""
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._serve(ready))
        try:
            async with asyncio.timeout(self.server.start_timeout_s):
                await asyncio.shield(ready)
        except TimeoutError:
            await self.close()
            raise ServerFailed(
                f"The MCP server {self.server.name} did not answer within"
                f" {self.server.start_timeout_s:g} s.{self._describe_stderr()}"
            ) from None
        except asyncio.CancelledError:
            await asyncio.shield(self.close())
            raise

    async def list_tools(self) -> ToolListing:
        """Return what the server lists now."""
        import mcp_types as types

        entries: list[Mapping[str, Any]] = []
        cursor: str | None = None
        for _ in range(_MAX_PAGES):
            params = types.PaginatedRequestParams(cursor=cursor)
            page = await self._request(
                types.ListToolsRequest(params=params),
                types.ListToolsResult,
                self.server.start_timeout_s,
                "list its tools",
            )
            entries += [
                tool.model_dump(by_alias=True, mode="json", exclude_none=True)
                for tool in page.tools
            ]
            cursor = page.next_cursor
            if not cursor or len(entries) > MAX_TOOLS:
                break
        return read_listing(self.server.name, self.server.timeout_s, entries)

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        """Call a tool; returns the protocol's result. Raises :class:`CallRefused` as well."""
        import mcp_types as types

        params = types.CallToolRequestParams(name=tool, arguments=dict(arguments))
        # Not the session's own call_tool: that runs patterns of the server's schemas in this process.
        return await self._request(
            types.CallToolRequest(params=params),
            types.CallToolResult,
            self.server.timeout_s,
            f"call {tool}",
            maybe=True,
        )

    async def close(self) -> None:
        """End the server and all of its processes."""
        self._stop.set()
        if self._task is None:
            return
        done: set[asyncio.Task[None]] = set()
        if self._session is not None:
            done, _ = await asyncio.wait([self._task], timeout=6)
        if not done:
            if self._process is not None:
                await end_group(self._process.process)
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _request(
        self, request: Any, kind: Any, timeout_s: float, verb: str, *, maybe: bool = False
    ) -> Any:
        from mcp import MCPError

        self._require_open()
        if self._process is not None:
            self._process.note_request()
        serving = self._require_task()
        asking = asyncio.ensure_future(self._session.send_request(request, kind))
        try:
            done, _ = await asyncio.wait(
                {asking, serving}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED
            )
            if asking not in done:
                self._failure = self._failure or (
                    f"it did not {verb} within {timeout_s:g} s" if not done else self._why_ended()
                )
                raise self._fail(maybe=maybe)
            return asking.result()
        except MCPError as error:
            if not self.is_open or self._is_broken():
                self._failure = self._failure or self._why_ended()
                raise self._fail(maybe=maybe) from error
            raise CallRefused(
                f"The MCP server {self.server.name} refused to {verb}: {clean_text(str(error), 600)}"
            ) from error
        except ServerFailed:
            raise
        except (ValueError, RuntimeError, OSError) as error:
            self._failure = f"its answer does not follow the protocol: {_find_fault(error)}"
            raise self._fail(maybe=maybe) from error
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)

    def _require_task(self) -> asyncio.Task[None]:
        if self._task is None:
            raise ServerFailed(f"The MCP server {self.server.name} was not started.")
        return self._task

    def _is_broken(self) -> bool:
        return self._process is not None and bool(self._process.ended)

    def _why_ended(self) -> str:
        return (self._process.ended if self._process is not None else "") or "it broke off"

    def _require_open(self) -> None:
        if not self.is_open or self._is_broken():
            self._failure = self._failure or self._why_ended()
            raise self._fail(maybe=False)

    def _fail(self, *, maybe: bool) -> ServerFailed:
        self._stop.set()
        return ServerFailed(
            f"The MCP server {self.server.name} failed: {self._failure}.{self._describe_stderr()}",
            maybe=maybe,
        )

    def _describe_stderr(self) -> str:
        lines = (
            self._process.stderr.decode("utf-8", "replace").splitlines() if self._process else []
        )
        last = next((line for line in reversed(lines) if line.strip()), "")
        for value, name in self.find_secrets():
            last = last.replace(value, f"[masked:{name}]")
        return f" It printed: {clean_text(last, 200)}" if last else ""

    async def _serve(self, ready: asyncio.Future[None]) -> None:
        """Hold the connection open; the SDK wants to be left in the task that entered it."""
        try:
            from mcp.client.session import ClientSession

            async with self._open_streams() as (read, write), ClientSession(read, write) as session:
                await session.initialize()
                self._session = session
                ready.set_result(None)
                await self._await_end()
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            self._failure = self._failure or self._explain(error)
        finally:
            if not ready.done():
                failure = self._failure or self._why_ended()
                ready.set_exception(
                    ServerFailed(
                        f"The MCP server {self.server.name} does not start: {failure}."
                        f"{self._describe_stderr()}"
                    )
                )
                ready.exception()  # looked at, also where nobody waits any longer

    async def _await_end(self) -> None:
        """Wait until the connection is closed, or its process ends."""
        waits = [asyncio.ensure_future(self._stop.wait())]
        if self._process is not None:
            waits.append(asyncio.ensure_future(self._process.over.wait()))
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()

    def _explain(self, error: BaseException) -> str:
        while isinstance(error, BaseExceptionGroup) and error.exceptions:
            error = error.exceptions[0]
        if self._is_broken():
            return self._why_ended()
        if isinstance(error, FileNotFoundError):
            return (
                f"{self.server.command[0]!r} was not found" if self.server.command else str(error)
            )
        return clean_text(f"{type(error).__name__}: {error}", 300)

    @asynccontextmanager
    async def _open_streams(self) -> AsyncIterator[tuple[Any, Any]]:
        if self.server.url:
            import httpx2
            from mcp.client.streamable_http import streamable_http_client

            headers = {
                header: self._variables[name]
                for header, name in self.server.headers.items()
                if name in self._variables
            }
            async with (
                httpx2.AsyncClient(
                    headers=headers, timeout=self.server.timeout_s, follow_redirects=False
                ) as client,
                streamable_http_client(self.server.url, http_client=client) as streams,
            ):
                yield streams[0], streams[1]
            return
        async with run_server(self.server, self._sandbox, self._root, self._environment) as (
            process,
            read,
            write,
        ):
            self._process = process
            yield read, write


def _find_fault(error: Exception) -> str:
    """Return the first fault of an answer, in one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (
        clean_text(": ".join(lines[1:3] if len(lines) > 2 else lines), 200) or type(error).__name__
    )
