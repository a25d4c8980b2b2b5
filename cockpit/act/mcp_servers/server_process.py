"""A server's process and its messages, line by line and bounded. See ``docs/reference/tools.md``."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from cockpit.access.process_group import end_group, start
from cockpit.act.mcp_servers.server_settings import McpServer
from cockpit.act.sandbox.bubblewrap import Extra, Sandbox
from cockpit.act.sandbox.run_confined import Watch

if TYPE_CHECKING:
    from mcp.shared.message import SessionMessage

MAX_LINE = 4 * 1024 * 1024
"""Bytes of one message; a server that writes a longer one is ended."""
MAX_UNASKED = 16 * 1024 * 1024
"""Bytes that a server may write between two requests; one that writes more is ended."""
MAX_MESSAGES = 5_000
"""Messages that a server may write between two requests; one that writes more is ended."""
KEPT_STDERR = 8_000
_CHUNK = 65_536


class ServerProcess(Struct):
    """A running server. ``ended`` says why its messages ended ('' while they come)."""

    process: asyncio.subprocess.Process
    ended: str = ""
    over: asyncio.Event = field(default_factory=asyncio.Event)
    unasked: int = 0
    messages: int = 0
    stderr: bytes = b""

    def end(self, why: str) -> None:
        """Note why no more messages come; the first reason counts."""
        self.ended = self.ended or why
        self.over.set()

    def note_request(self) -> None:
        """Begin to count again what the server writes."""
        self.unasked = self.messages = 0


@asynccontextmanager
async def run_server(
    server: McpServer, sandbox: Sandbox, root: Path, environment: Mapping[str, str]
) -> AsyncIterator[tuple[ServerProcess, Any, Any]]:
    """Start the server's program; yields it with the streams that the SDK's session reads and writes.

    All of its processes are ended afterwards. Raises ``OSError`` where it cannot be started.
    """
    import anyio

    confined = sandbox if server.sandbox else replace(sandbox, bwrap=None)
    extra = Extra(
        root="write" if server.write else "read",
        read=tuple((place, place) for place in server.read_places),
        write=tuple((place, place) for place in server.write_places),
    )
    watch = Watch(confined.choices.limits, root, whole=confined.works)
    with confined.launch(
        server.command, root, environment, network=server.network, extra=extra
    ) as launch:
        process = await start(launch.argv, root, environment, piped=True, files=launch.files)
    running = ServerProcess(process)
    to_session, from_server = anyio.create_memory_object_stream[Any](0)
    to_server, from_session = anyio.create_memory_object_stream[Any](0)
    watch.begin(process.pid)
    tasks = [
        asyncio.ensure_future(_read_messages(running, watch, to_session)),
        asyncio.ensure_future(_write_messages(running, from_session)),
        asyncio.ensure_future(_keep_stderr(running)),
    ]
    try:
        yield running, from_server, to_server
    finally:
        await asyncio.shield(_close(running, watch, tasks))


async def _close(
    running: ServerProcess, watch: Watch, tasks: Sequence[asyncio.Future[None]]
) -> None:
    running.end("it was ended")
    if running.process.stdin is not None:
        running.process.stdin.close()  # the protocol's own way to end a server
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.2):
                await running.process.wait()
    await end_group(running.process)
    await watch.end()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _read_messages(running: ServerProcess, watch: Watch, to_session: Any) -> None:
    """Pass on every line as a message; what is not a message is skipped."""
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter

    logging.getLogger("client").setLevel(logging.CRITICAL)  # the server's words are not our log
    output, buffer = running.process.stdout, bytearray()
    async with to_session:
        while output is not None and (chunk := await output.read(_CHUNK)):
            running.unasked += len(chunk)
            if running.unasked > MAX_UNASKED:
                running.end(f"it wrote more than {MAX_UNASKED // 1024**2} MiB unasked")
                return
            if len(buffer) + len(chunk) > MAX_LINE + _CHUNK:
                running.end(f"it wrote a message of more than {MAX_LINE // 1024**2} MiB")
                return
            buffer += chunk
            if b"\n" not in chunk:
                continue
            *lines, rest = bytes(buffer).split(b"\n")
            buffer = bytearray(rest)
            running.messages += len(lines)
            if running.messages > MAX_MESSAGES:
                running.end(f"it wrote more than {MAX_MESSAGES:,} messages unasked")
                return
            for line in lines:
                message = _parse(jsonrpc_message_adapter, line)
                if message is not None:
                    await to_session.send(SessionMessage(message))
        running.end(await _describe_end(running, watch))


def _parse(adapter: Any, line: bytes) -> Any:
    if not line.strip():
        return None
    try:
        return adapter.validate_json(line, by_name=False)
    except (ValueError, RecursionError):
        return None


async def _describe_end(running: ServerProcess, watch: Watch) -> str:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(2):
            await running.process.wait()
    if watch.reason:
        return f"it was ended, {watch.reason}"
    code = running.process.returncode
    if code is None:
        return "it closed its output"
    return f"it ended with exit {code}" if code >= 0 else f"signal {-code} ended it"


async def _write_messages(running: ServerProcess, from_session: Any) -> None:
    stdin = running.process.stdin
    async with from_session:
        async for each in from_session:
            if stdin is None:
                return
            message: SessionMessage = each
            line = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            try:
                stdin.write(line.encode() + b"\n")
                await stdin.drain()
            except (BrokenPipeError, ConnectionResetError):
                return


async def _keep_stderr(running: ServerProcess) -> None:
    stream = running.process.stderr
    while stream is not None and (chunk := await stream.read(_CHUNK)):
        running.stderr = (running.stderr + chunk)[-KEPT_STDERR:]
