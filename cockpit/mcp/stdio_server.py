"""The protocol over standard input and output: one client, one JSON message a line.

It is answered here and not by the SDK, whose models take most of a second and 40 MiB to load in the server of
every client. See ``docs/reference/mcp.md``.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, NoReturn

from cockpit import __version__
from cockpit.core.errors import CockpitError
from cockpit.mcp.answer_call import INSTRUCTIONS, ToolServer, identify_client
from cockpit.mcp.stdio_lines import Wire

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Versions of the protocol that a client can ask for, the newest last."""
_NOT_JSON, _NO_REQUEST, _NO_METHOD, _WRONG_PARAMS = -32700, -32600, -32601, -32602


class _Refused(CockpitError):
    """A message that is answered with an error of the protocol."""

    def __init__(self, number: int, message: str) -> None:
        super().__init__(message)
        self.number = number


class StdioServer:
    """One client's connection."""

    def __init__(self, tools: ToolServer, token: str, wire: Wire) -> None:
        self._tools = tools
        self._token = token
        self._wire = wire
        self._client_name: str | None = None
        """The name that the client gives itself; None before it has greeted."""
        self._calls: dict[object, asyncio.Task[None]] = {}

    async def serve(self) -> None:
        """Serve until the client closes its end, or stops reading."""
        try:
            async for line in self._wire.lines():
                if line.strip():
                    await self._take(line)
        except BrokenPipeError:
            pass  # The client is gone, so there is no one to report the error to.
        finally:
            calls = list(self._calls.values())
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)

    async def _take(self, line: str) -> None:
        request_id: object = None
        try:
            message = _read_message(line)
            request_id = message.get("id")
            if "method" not in message and ("result" in message or "error" in message):
                return  # an answer, and nothing was asked
            method, params = message.get("method"), message.get("params")
            params = {} if params is None else params
            if not isinstance(method, str) or not isinstance(params, dict):
                raise _Refused(_NO_REQUEST, "A message needs a method, and params are an object.")
            if "id" not in message:
                if method == "notifications/cancelled":
                    self._cancel(params.get("requestId"))
                return
            if type(request_id) not in (int, str):
                request_id = None
                raise _Refused(_NO_REQUEST, "The id of a request is a text or a whole number.")
            if method == "tools/call" and self._client_name is not None:
                self._begin_call(request_id, params)
                return
            answer = {"result": self._answer(method, params)}
        except _Refused as error:
            answer = {"error": {"code": error.number, "message": str(error)}}
        await self._write(request_id, answer)

    def _answer(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Answer every request but a call. Raises :class:`_Refused`."""
        if method == "initialize":
            return self._greet(params)
        if method == "ping":
            return {}
        if method not in ("tools/list", "tools/call"):
            raise _Refused(_NO_METHOD, f"Method not found: {method[:100]}")
        if self._client_name is None:
            raise _Refused(_NO_REQUEST, f"Send initialize before {method}.")
        return {"tools": self._tools.list_tools()}

    def _greet(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        wanted, about = params.get("protocolVersion"), params.get("clientInfo")
        name = about.get("name") if isinstance(about, dict) else None
        if not isinstance(wanted, str) or not isinstance(name, str):
            raise _Refused(_WRONG_PARAMS, "initialize needs protocolVersion and clientInfo.name.")
        self._client_name = name
        return {
            "protocolVersion": wanted if wanted in VERSIONS else VERSIONS[-1],
            "capabilities": {"tools": {"listChanged": False}},
            "serverInfo": {"name": "cockpit", "version": __version__},
            "instructions": INSTRUCTIONS,
        }

    def _begin_call(self, request_id: object, params: Mapping[str, Any]) -> None:
        name, arguments = params.get("name"), params.get("arguments")
        if not isinstance(name, str) or not isinstance(arguments, dict | None):
            raise _Refused(_WRONG_PARAMS, "tools/call needs a name, and arguments are an object.")
        self._calls[request_id] = asyncio.create_task(self._call(request_id, name, arguments))

    async def _call(
        self, request_id: object, name: str, arguments: Mapping[str, Any] | None
    ) -> None:
        client = identify_client(self._token, self._client_name or "")
        try:
            text, is_error = await self._tools.call(name, client, arguments)
            result = {"content": [{"type": "text", "text": text}], "isError": is_error}
            await self._write(request_id, {"result": result})
        except BrokenPipeError:
            self._wire.stop()
        finally:
            if self._calls.get(request_id) is asyncio.current_task():
                del self._calls[request_id]

    def _cancel(self, request_id: object) -> None:
        """Cancel a call; it gets no answer."""
        call = self._calls.pop(request_id, None) if isinstance(request_id, int | str) else None
        if call is not None:
            call.cancel()

    async def _write(self, request_id: object, answer: Mapping[str, Any]) -> None:
        message = {"jsonrpc": "2.0", "id": request_id, **answer}
        await self._wire.write(
            json.dumps(message, ensure_ascii=False, separators=(",", ":")) + "\n"
        )


def _read_message(line: str) -> dict[str, Any]:
    """Read a line. Raises :class:`_Refused`."""
    try:
        message = json.loads(line, parse_constant=_refuse_constant)
        if "\\ud" in line.lower():
            # Half of a surrogate pair, from a text that was cut inside an emoji, cannot be stored.
            whole = json.dumps(message, ensure_ascii=False).encode("utf-8", "replace")
            message = json.loads(whole)
    except (ValueError, RecursionError) as error:
        raise _Refused(_NOT_JSON, f"The line is not JSON: {error}") from error
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise _Refused(_NO_REQUEST, "A message is an object of JSON-RPC 2.0, one a line.")
    return message


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")
