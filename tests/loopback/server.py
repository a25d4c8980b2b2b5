"""A real HTTP server on 127.0.0.1 that speaks the providers' streaming protocols, by script.

::

    async with Loopback() as server:
        server.play([Refuse(429, retry_after="2"), Say("Hello", calls=(Use("finish", {}),))])
        ...                       # point ANTHROPIC_BASE_URL at server.url, OPENAI_BASE_URL at
        ...                       # server.openai_url
        server.requests[0].body   # what was sent

One server speaks Anthropic Messages, OpenAI chat completions and OpenAI Responses, by path. Replies
are used up in order; a request that finds none is refused with 400 and shows in ``unexpected``.
``LoopbackThread`` is the same for tests without an event loop.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from loopback.protocols import PROTOCOLS, encoded, refusal, stream_error
from loopback.replies import Drop, Refuse, Reply, Say, Silence

__all__ = ["Drop", "Loopback", "LoopbackThread", "Received", "Refuse", "Reply", "Say", "Silence"]


@dataclass(frozen=True, slots=True)
class Received:
    """One request: path, headers (names in lower case) and the JSON body."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class Loopback:
    """The server. ``url`` is its root, ``openai_url`` the same with ``/v1``."""

    def __init__(self, replies: Iterable[Reply | Callable[[Received], Reply]] = ()) -> None:
        self._replies: list[Reply | Callable[[Received], Reply]] = list(replies)
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()
        self.requests: list[Received] = []
        self.unexpected: list[Received] = []
        self.hung_up = asyncio.Event()
        """Set when a client closes its connection while an answer is held back."""
        self.holding = asyncio.Event()
        """Set when an answer is being held back."""

    def play(self, replies: Iterable[Reply | Callable[[Received], Reply]]) -> None:
        """Add answers. A callable is given the request and returns its answer."""
        self._replies.extend(replies)

    def forget(self) -> None:
        """Drop the answers that are still to come."""
        self._replies.clear()

    @property
    def port(self) -> int:
        assert self._server is not None, "the server runs only inside its with block"
        return int(self._server.sockets[0].getsockname()[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def openai_url(self) -> str:
        return f"{self.url}/v1"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in tuple(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
        await self._server.wait_closed()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            await self._answer(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client went away, which is its right
        except asyncio.CancelledError:
            pass  # the server ends; asyncio would report the task of a connection as failed
        finally:
            self._open.discard(task)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await _received(reader)
        self.requests.append(request)
        reply = self._next(request)
        if isinstance(reply, Drop):
            return
        if isinstance(reply, Silence):
            await self._hold(reader)
        elif isinstance(reply, Refuse):
            await _refuse(writer, request.path, reply)
        elif request.path not in PROTOCOLS:
            await _refuse(writer, request.path, Refuse(404, f"no such path: {request.path}"))
        else:
            await self._stream(reader, writer, request, reply)

    def _next(self, request: Received) -> Reply:
        if not self._replies:
            self.unexpected.append(request)
            return Refuse(400, "the loopback server has no reply left")
        reply = self._replies.pop(0)
        return reply(request) if callable(reply) else reply

    async def _stream(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        request: Received,
        say: Say,
    ) -> None:
        events = PROTOCOLS[request.path](say, str(request.body.get("model", "")))
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
            b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        )
        for number in range(len(events) + 1):
            if number == say.cut_after:
                await writer.drain()
                return
            if number == say.hold_after:
                await writer.drain()
                while say.chatty:
                    _chunk(writer, b": keep-alive\n\n")
                    await writer.drain()
                    await asyncio.sleep(0.02)
                await self._hold(reader)
                return
            while number == say.repeat_after:
                _chunk(writer, encoded(events[number - 1]))
                await writer.drain()
            if number == say.fail_after:
                _chunk(writer, encoded(stream_error(request.path, say.fail_type)))
                break
            if number == say.end_after or number == len(events):
                break
            _chunk(writer, encoded(events[number]))
            await writer.drain()
        _chunk(writer, b"")
        await writer.drain()

    async def _hold(self, reader: asyncio.StreamReader) -> None:
        self.holding.set()
        while await reader.read(1024):
            continue
        self.hung_up.set()


class LoopbackThread:
    """A :class:`Loopback` in a thread of its own, for tests without an event loop."""

    def __init__(self, replies: Iterable[Reply | Callable[[Received], Reply]] = ()) -> None:
        self._replies = list(replies)
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)
        self._server: Loopback | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None

    @property
    def server(self) -> Loopback:
        assert self._server is not None, "the server runs only inside its with block"
        return self._server

    def __enter__(self) -> Loopback:
        self._thread.start()
        self._ready.wait()
        return self.server

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._loop is not None
        assert self._stop is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        async with Loopback(self._replies) as self._server:
            self._ready.set()
            await self._stop.wait()


async def _received(reader: asyncio.StreamReader) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    path = head[0].split(" ")[1].partition("?")[0]
    pairs = (line.partition(":") for line in head[1:] if line)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received(path, headers, json.loads(body) if body else {})


async def _refuse(writer: asyncio.StreamWriter, path: str, refuse: Refuse) -> None:
    body = json.dumps(refusal(path, refuse)).encode()
    wait = f"Retry-After: {refuse.retry_after}\r\n" if refuse.retry_after is not None else ""
    writer.write(
        f"HTTP/1.1 {refuse.status} Refused\r\nContent-Type: application/json\r\n{wait}"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
        + body
    )
    await writer.drain()


def _chunk(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
