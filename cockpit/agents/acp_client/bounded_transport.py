"""The agent's messages, bounded: line by line, in order, and no faster than they are worked through.

The kept library reads lines of any length and starts a task for each message. So this transport reads
first: it skips lines that are too long, drops what is not a message, handles ``session/update`` itself, and
passes on only answers and a limited number of requests. While it waits it does not read, so that a flood
fills the pipe and stops the agent. See ``docs/reference/agents.md``.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from cockpit.agents.runs.agent_process import LineReader

LONGEST_LINE = 32 * 1024 * 1024
"""Bytes of one message; a longer one is skipped."""
MOST_REQUESTS = 64
"""Requests of the agent that wait for an answer at once; further ones are refused."""

_CHUNK = 65_536
_LARGE = 256 * 1024
"""Bytes of a line from which it is parsed in a thread."""
_TURN = 16
"""Messages after which others get their turn on the event loop."""
_QUOTED = 200
_LONGEST_ID = 200
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_INVALID_REQUEST = -32600
_INTERNAL_ERROR = -32603

Message = dict[str, Any]
OnUpdate = Callable[[Mapping[str, Any]], Awaitable[None]]
OnOdd = Callable[[str], Awaitable[None]]


class BoundedTransport:
    """Messages over an agent's standard streams, as the library's ``Transport``.

    ``on_update`` receives the parameters of each ``notification`` before the next message is read;
    ``on_odd`` one sentence for each thing that is not a message of the protocol.
    """

    def __init__(
        self,
        output: asyncio.StreamReader,
        stdin: asyncio.StreamWriter,
        on_update: OnUpdate,
        on_odd: OnOdd,
        *,
        longest: int = LONGEST_LINE,
        notification: str = "session/update",
    ) -> None:
        self._notification = notification
        self._output = output
        self._stdin = stdin
        self._on_update = on_update
        self._on_odd = on_odd
        self._reader = LineReader(longest)
        self._longest = longest
        self._lines: deque[str | None] = deque()
        self._open: set[int | str] = set()
        self._sending = asyncio.Lock()
        self._closed = False
        self._ended = False
        self._since_turn = 0

    async def send(self, message: Message) -> None:
        """Write one message. An answer to an agent that is gone is dropped; a request raises."""
        is_answer = "method" not in message
        if is_answer:
            self._open.discard(message.get("id", ""))
        if self._closed:
            if is_answer:
                return
            raise ConnectionError("the agent is gone")
        data = json.dumps(message, separators=(",", ":")).encode("ascii") + b"\n"
        try:
            async with self._sending:
                self._stdin.write(data)
                await self._stdin.drain()
        except (OSError, RuntimeError) as error:
            if not is_answer:
                raise ConnectionError("the agent is gone") from error

    async def receive(self) -> Message | None:
        """Return the next request or answer; None at the end of the agent's output."""
        while not self._closed:
            if not self._lines and not await self._read_chunk():
                return None
            line = self._lines.popleft()
            self._since_turn += 1
            if self._since_turn >= _TURN:
                # Neither a full buffer nor a handler without an await would let others run.
                self._since_turn = 0
                await asyncio.sleep(0)
            message = await self._parse(line)
            if message is not None and (message := await self._route(message)) is not None:
                return message
        return None

    async def close(self) -> None:
        """Stop sending and receiving. The process is its owner's to end."""
        self._closed = True

    async def _read_chunk(self) -> bool:
        """Read until there is a line; False at the end."""
        while not self._lines:
            if self._ended:
                return False
            try:
                chunk = await self._output.read(_CHUNK)
            except OSError:
                chunk = b""
            self._lines.extend(self._reader.feed(chunk) if chunk else self._reader.end())
            self._ended = not chunk
        return True

    async def _parse(self, line: str | None) -> Message | None:
        if line is None:
            await self._on_odd(f"a message of more than {self._longest:,} bytes: skipped")
            return None
        if not line.strip():
            return None
        is_large = len(line) > _LARGE
        message = await asyncio.to_thread(_parse, line) if is_large else _parse(line)
        if message is None:
            await self._on_odd(f"no message of the protocol: {line.strip()[:_QUOTED]!r}")
        return message

    async def _route(self, message: Message) -> Message | None:
        """Return a request or an answer for the library; work through everything else."""
        method, number = message.get("method"), message.get("id")
        if method is None:
            return await self._check_answer(message)
        if not isinstance(method, str):
            await self._on_odd(f"a method that is not text: {str(method)[:_QUOTED]!r}")
            return None
        params = message.get("params")
        if "id" not in message:
            if method == self._notification and isinstance(params, dict):
                await self._on_update(params)
            elif not method.startswith(("_", "$/")):
                await self._on_odd(f"an unknown notification: {method[:_QUOTED]!r}")
            return None
        if not isinstance(number, int | str) or not _is_id(number):
            await self._on_odd(
                f"a request whose id is not a number or short text: {method[:_QUOTED]!r}"
            )
            return None
        if number in self._open:
            await self._on_odd(f"two requests with the id {str(number)[:_QUOTED]!r} at once")
            return None
        if len(self._open) >= MOST_REQUESTS:
            await self._refuse(number, f"more than {MOST_REQUESTS} requests wait for an answer")
            return None
        if params is not None and not isinstance(params, dict):
            await self._refuse(number, "params must be an object")
            return None
        self._open.add(number)
        return {"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}}

    async def _check_answer(self, message: Message) -> Message | None:
        number = message.get("id")
        if isinstance(number, bool) or not isinstance(number, int):
            await self._on_odd("an answer without the number of a request")
            return None
        error = message.get("error")
        if error is None:
            return {"jsonrpc": "2.0", "id": number, "result": message.get("result")}
        body = error if isinstance(error, dict) else {}
        code, text = body.get("code"), body.get("message")
        return {
            "jsonrpc": "2.0",
            "id": number,
            "error": {
                "code": code
                if isinstance(code, int) and not isinstance(code, bool)
                else _INTERNAL_ERROR,
                "message": text if isinstance(text, str) and text else "the agent gave no reason",
                "data": body.get("data"),
            },
        }

    async def _refuse(self, number: int | str, words: str) -> None:
        error = {"code": _INVALID_REQUEST, "message": f"Invalid request: {words}"}
        await self.send({"jsonrpc": "2.0", "id": number, "error": error})


def _is_id(number: int | str) -> bool:
    if isinstance(number, str):
        return len(number) <= _LONGEST_ID
    return not isinstance(number, bool)


def _parse(line: str) -> Message | None:
    """Parse one JSON object without what no file and no database can store."""
    if not line.lstrip().startswith("{"):
        return None
    try:
        value = json.loads(line, parse_constant=_drop, parse_float=_read_float)
        if _SURROGATE.search(line):
            value = _without_surrogates(value)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _drop(_: str) -> None:
    return None


def _read_float(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, list):
        return [_without_surrogates(entry) for entry in value]
    if isinstance(value, dict):
        return {
            _without_surrogates(name): _without_surrogates(entry) for name, entry in value.items()
        }
    return value
