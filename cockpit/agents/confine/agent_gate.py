"""The gate of a confined agent: the way out to its provider, and to our own server and hooks.

The agent's sandbox has a network of its own with nothing in it. This end listens on a socket that the
sandbox sees as a file, and connects what is on its list: the provider's servers by name and port, and
the two programs of ours that act for the agent with its own token. See ``docs/reference/agents.md``.
"""

from __future__ import annotations

import asyncio
import base64
import json
import struct
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

from msgspec import Struct, field

_CHUNK = 65_536
_LONGEST_REQUEST = 4_096
_CONNECT_S = 30.0
_MOST_AT_ONCE = 128


class GateList(Struct, frozen=True):
    """What the gate lets through."""

    places: frozenset[str]
    """Servers as ``host:port``."""
    calls: Mapping[str, Sequence[str]]
    """Programs of ours by name, each an argv."""
    cwd: Path
    environment: Mapping[str, str]
    """The variables of those programs."""
    proxy: str = ""
    """The user's own proxy, by which the provider is reached; '' for none."""
    refused: set[str] = field(default_factory=set)
    """Servers that were asked for and are not on the list."""


@asynccontextmanager
async def open_gate(path: Path, listed: GateList) -> AsyncIterator[None]:
    """Listen at ``path`` while the context is open; what is connected then ends with it."""
    slots, tasks = asyncio.Semaphore(_MOST_AT_ONCE), set[asyncio.Task[None]]()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            tasks.add(task)
        try:
            async with slots:
                await _answer(reader, writer, listed)
        except (OSError, ValueError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the agent sent nonsense, or it is gone and its gate with it: all is closed below
        finally:
            writer.close()
            if task is not None:
                tasks.discard(task)

    server = await asyncio.start_unix_server(answer, path=path, limit=_CHUNK)
    try:
        yield
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _answer(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, listed: GateList
) -> None:
    line = await reader.readline()
    request = json.loads(line) if len(line) <= _LONGEST_REQUEST else None
    if not isinstance(request, dict):
        raise ValueError("no request")
    what, place = request.get("call"), request.get("to")
    if isinstance(what, str) and what in listed.calls:
        await _call(reader, writer, listed, listed.calls[what])
    elif isinstance(place, str) and place.lower() in listed.places:
        await _connect(reader, writer, listed, place.lower())
    else:
        if isinstance(place, str):
            listed.refused.add(place[:200])
        name = place if isinstance(place, str) else what
        writer.write(
            f"{str(name)[:200]!r} is not among the servers of this agent. Add it to [runner] hosts in "
            "your configuration.\n".encode("utf-8", "replace")
        )
        await writer.drain()


async def _connect(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, listed: GateList, place: str
) -> None:
    host, _, port = place.rpartition(":")
    try:
        async with asyncio.timeout(_CONNECT_S):
            far_reader, far_writer = await _dial(host.strip("[]"), int(port), listed.proxy)
    except (OSError, TimeoutError, ValueError) as error:
        writer.write(f"{place} cannot be reached: {error}\n".encode("utf-8", "replace"))
        await writer.drain()
        return
    writer.write(b"ok\n")
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_pump(reader, far_writer))
            group.create_task(_pump(far_reader, writer))
    finally:
        far_writer.close()


async def _dial(
    host: str, port: int, proxy: str
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if not proxy or host in ("127.0.0.1", "::1", "localhost"):
        return await asyncio.open_connection(host, port)
    address = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    reader, writer = await asyncio.open_connection(
        address.hostname or "", address.port or 80, ssl=True if address.scheme == "https" else None
    )
    login = ""
    if address.username:
        pair = f"{unquote(address.username)}:{unquote(address.password or '')}"
        login = f"Proxy-Authorization: Basic {base64.b64encode(pair.encode()).decode()}\r\n"
    writer.write(f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n{login}\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    if head.split(b" ", 2)[1:2] != [b"200"]:
        writer.close()
        raise OSError(f"your proxy answered {head.splitlines()[0].decode('latin-1')[:100]}")
    return reader, writer


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter | None) -> None:
    try:
        while writer is not None and (chunk := await reader.read(_CHUNK)):
            writer.write(chunk)
            await writer.drain()
        if writer is not None and writer.can_write_eof():
            writer.write_eof()
    except OSError:
        return  # the other end is gone


async def _call(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    listed: GateList,
    argv: Sequence[str],
) -> None:
    """Run one of our programs; its output comes in frames, its exit code is the last one."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *argv, cwd=listed.cwd, env=dict(listed.environment), stdin=pipe, stdout=pipe, stderr=pipe
    )
    writer.write(b"ok\n")
    fed = asyncio.ensure_future(_pump(reader, process.stdin))
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_frames(1, process.stdout, writer))
            group.create_task(_frames(2, process.stderr, writer))
        code = await process.wait()
        writer.write(struct.pack("!BI", 0, code if code >= 0 else 128 - code))
        await writer.drain()
    finally:
        fed.cancel()
        if process.returncode is None:
            process.kill()
            await process.wait()
        await asyncio.gather(fed, return_exceptions=True)


async def _frames(
    stream_number: int, stream: asyncio.StreamReader | None, writer: asyncio.StreamWriter
) -> None:
    while stream is not None and (chunk := await stream.read(_CHUNK)):
        writer.write(struct.pack("!BI", stream_number, len(chunk)) + chunk)
        await writer.drain()
