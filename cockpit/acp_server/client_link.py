"""The client's end of the connection: what the agent sends to it, and a question that may be withdrawn.

See ``docs/reference/acp.md``.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any, Protocol

from cockpit.core.json_fields import JsonObject, get_object, get_text

Update = Mapping[str, Any]
CANCELLED = "cancelled"
"""The outcome of a question that the client closed without an answer."""


class Connection(Protocol):
    """What is used of the library's connection."""

    async def send_request(self, method: str, params: Any = None) -> Any:
        """Make a request and return its result."""

    async def send_notification(self, method: str, params: Any = None) -> None:
        """Send a notification."""


class RequestIds:
    """The ids of the requests that the library sends, which it does not return."""

    def __init__(self) -> None:
        self._by_call: dict[str, int | str] = {}

    def observe(self, message: Mapping[str, Any]) -> None:
        """Remember the id of a question about a tool call, as the transport sends it."""
        if message.get("method") == "session/request_permission":
            call = get_object(message.get("params") or {}, "toolCall")
            self._by_call[get_text(call, "toolCallId")] = message["id"]

    def take(self, call_id: str) -> int | str | None:
        """Return and forget the id of the question about a tool call; None without one."""
        return self._by_call.pop(call_id, None)


class ClientLink:
    """Sends a session's updates and questions to the client. A client that is gone gets none."""

    def __init__(self, ids: RequestIds) -> None:
        self._ids = ids
        self._connection: Connection | None = None

    def connect(self, connection: Connection) -> None:
        """Send over ``connection`` from now on."""
        self._connection = connection

    async def update(self, session_id: str, update: Update) -> None:
        """Send one ``session/update``."""
        await self._notify("session/update", {"sessionId": session_id, "update": dict(update)})

    async def ask_permission(
        self, session_id: str, call: Update, options: list[dict[str, str]]
    ) -> str:
        """Ask the user through the client; returns the id of the option, or :data:`CANCELLED`.

        Cancelling the call withdraws the question. Raises ``ConnectionError`` where the client is gone, and
        the library's ``RequestError`` where it refuses.
        """
        if self._connection is None:
            raise ConnectionError("no client is connected")
        call_id = get_text(call, "toolCallId")
        params = {"sessionId": session_id, "toolCall": dict(call), "options": options}
        try:
            answer = await self._connection.send_request("session/request_permission", params)
        except asyncio.CancelledError:
            if (number := self._ids.take(call_id)) is not None:
                await self._notify("$/cancel_request", {"requestId": number})
            raise
        self._ids.take(call_id)
        outcome = get_object(answer if isinstance(answer, dict) else {}, "outcome")
        if get_text(outcome, "outcome") != "selected":
            return CANCELLED
        return get_text(outcome, "optionId")

    async def _notify(self, method: str, params: JsonObject) -> None:
        if self._connection is not None:
            with contextlib.suppress(ConnectionError):
                await self._connection.send_notification(method, dict(params))
