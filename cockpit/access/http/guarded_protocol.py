"""HTTP connections with limits: for slow senders, for slow readers, and for many clients.

uvicorn waits for a request's head for ever, and for a reader that takes nothing. Here each has a few
seconds. ``cockpit serve`` and ``cockpit mcp --http`` listen with it. See ``docs/reference/http.md``, limits.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_S = 5.0
"""Seconds for the whole head of a request."""
READ_S = 20.0
"""Seconds in which a reader must take something of an answer."""
MOST_CONNECTIONS = 256
"""Connections at the same time; further ones are answered 503."""
IDLE_S = 5
"""Seconds until a connection without a request is closed."""
LARGEST_HEAD = 32_768
"""Bytes of a request's head."""

PEER = "peer_pid"
"""Under this name a request's state has the process at the other end of a Unix socket."""

_TITLES = {400: "Bad Request", 408: "Request Timeout", 503: "Service Unavailable"}
_CREDENTIALS = struct.Struct("3i")


class StrictConnection(h11.Connection):
    """Parses requests, and refuses two kinds that h11 takes.

    A head that arrives whole in one read passes the limit of h11. One that names two lengths of
    its body may be two requests to a proxy in front of the server.
    """

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """Return what comes next. Raises ``h11.RemoteProtocolError``."""
        event = super().next_event()
        if isinstance(event, h11.Request):
            _check_head(event)
        return event


def _check_head(request: h11.Request) -> None:
    size = len(request.method) + len(request.target)
    size += sum(len(name) + len(value) + 4 for name, value in request.headers)
    if size > LARGEST_HEAD:
        raise h11.RemoteProtocolError("The head is too large.")
    if {b"content-length", b"transfer-encoding"} <= {name for name, _ in request.headers}:
        raise h11.RemoteProtocolError("The head names two lengths.")


class GuardedProtocol(H11Protocol):
    """One connection. Class attributes hold the limits, in seconds and connections."""

    head_s = HEAD_S
    read_s = READ_S
    most_connections = MOST_CONNECTIONS
    _head_timer: asyncio.TimerHandle | None = None
    _read_timer: asyncio.TimerHandle | None = None
    _handed_on = False
    """Whether the connection is a WebSocket now, and another protocol's."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.conn = StrictConnection(h11.SERVER, LARGEST_HEAD)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin with a connection; one too many is answered at once."""
        super().connection_made(transport)
        if len(self.connections) > self.most_connections:
            self._refuse(503, "too_many_clients", "This server has as many clients as it may.")
            return
        peer = _read_peer(transport.get_extra_info("socket"))
        if peer is not None:
            self.app_state = {**self.app_state, PEER: peer}
        self._await_head()

    def data_received(self, data: bytes) -> None:
        """Read what came; the head of a request must be whole in time."""
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self._handed_on:
            return
        if self._reads_head():
            self._await_head()
        else:
            self._stop_waiting()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """Hand the connection on to the protocol of WebSockets."""
        self._handed_on = True
        self._stop_waiting()
        super().handle_websocket_upgrade(event)

    def on_response_complete(self) -> None:
        """Wait for the next request, or read what has come of it already."""
        super().on_response_complete()
        if self._reads_head() and self.conn.trailing_data[0]:
            self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """End every timer of the connection."""
        self._stop_waiting()
        self._stop_read_timer()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Wait for a reader that is behind, for a while."""
        super().pause_writing()
        if self._read_timer is None:
            self._read_timer = self.loop.call_later(self.read_s, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on: the reader has taken what it was sent."""
        self._stop_read_timer()
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection; what its reader does not take is given up."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            super().timeout_keep_alive_handler()

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP with a problem document."""
        self._refuse(400, "malformed", msg)

    def _reads_head(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _await_head(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(self.head_s, self._give_up)

    def _stop_waiting(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _stop_read_timer(self) -> None:
        if self._read_timer is not None:
            self._read_timer.cancel()
            self._read_timer = None

    def _give_up(self) -> None:
        self._head_timer = None
        if self.transport.is_closing() or not self._reads_head():
            return
        if self.conn.trailing_data[0]:
            detail = f"The head of the request did not arrive within {self.head_s:g} seconds."
            self._refuse(408, "too_slow", detail)
        else:
            self.transport.close()

    def _refuse(self, status: int, code: str, detail: str) -> None:
        """Answer with a problem document and close; the parser's state does not matter any more."""
        self._stop_waiting()
        body = json.dumps(
            {
                "type": f"urn:problem-type:cockpit:{code}",
                "title": _TITLES[status],
                "status": status,
                "detail": detail,
                "code": code,
            }
        ).encode("ascii")
        head = (
            f"HTTP/1.1 {status} {_TITLES[status]}\r\n"
            f"content-type: application/problem+json\r\ncontent-length: {len(body)}\r\n"
            "cache-control: no-store\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode("ascii") + body)
        self.transport.close()
        if self.conn.our_state not in (h11.CLOSED, h11.ERROR):
            self.conn.send_failed()


def _read_peer(line: Any) -> int | None:
    """Return the process at the other end of a Unix socket; None where the system does not say."""
    if line is None or line.family != socket.AF_UNIX or not hasattr(socket, "SO_PEERCRED"):
        return None
    raw = line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, _, _ = _CREDENTIALS.unpack(raw)
    return int(pid) or None
