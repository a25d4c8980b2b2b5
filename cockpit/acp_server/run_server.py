"""Run the agent on standard input and output, from a client's first message to its end.

The library is imported here, when a client has started the command. See ``docs/reference/acp.md``.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from cockpit.access.user_presence import shield_process
from cockpit.acp_server.agent_server import AgentServer, OpenProject, UnknownMethod
from cockpit.acp_server.client_link import ClientLink, RequestIds
from cockpit.acp_server.session_updates import Wording
from cockpit.agents.acp_client.bounded_transport import BoundedTransport
from cockpit.core.errors import CockpitError, NotFound

_INVALID_PARAMS = -32602
_INTERNAL_ERROR = -32603
_NOT_FOUND = -32002
_READ_AHEAD = 1024 * 1024
_USAGE = "usage"
_UNREAD_S = 5.0
"""Seconds that a client that has closed its output may take to read the rest of ours."""


async def serve_stdio(
    open_project: OpenProject, wording: Wording, say: Callable[[str], object]
) -> None:
    """Serve the client on standard input and output; see :func:`serve_streams`.

    Raises ``ValueError`` where standard input or output is a file.
    """
    shield_process()
    with _claim_output() as output:
        reader, writer = await _open_streams(output)
        await serve_streams(open_project, wording, say, reader, writer)


async def serve_streams(
    open_project: OpenProject,
    wording: Wording,
    say: Callable[[str], object],
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    """Serve the client until it closes its end; what runs then is stopped and can be resumed.

    ``say`` prints a sentence for the user on standard error.
    """
    from acp.connection import Connection
    from acp.exceptions import RequestError

    ids = RequestIds()
    link = ClientLink(ids)
    server = AgentServer(open_project, link, wording)

    async def note_odd(words: str) -> None:
        say(f"cockpit acp: ignored {wording.clean(words)}")

    transport = _ObservedTransport(
        reader, writer, server.cancel, note_odd, notification="session/cancel"
    )
    transport.ids = ids
    connection = Connection(_handle_with(server, RequestError), transport, listening=False)
    link.connect(connection)
    try:
        await connection.main_loop()
    finally:
        await asyncio.shield(_close(server, connection, writer))


class _ObservedTransport(BoundedTransport):
    """The transport, which remembers the ids of the library's requests as they are sent."""

    ids: RequestIds

    async def send(self, message: dict[str, Any]) -> None:
        self.ids.observe(message)
        await super().send(message)


async def _close(server: AgentServer, connection: Any, writer: asyncio.StreamWriter) -> None:
    closing = asyncio.ensure_future(server.close())
    await asyncio.wait({closing}, timeout=_UNREAD_S)
    if not closing.done():
        writer.transport.abort()  # a client that keeps its end open, and no longer reads, stops nothing
    await closing
    await connection.close()
    writer.close()


def _handle_with(
    server: AgentServer, request_error: Callable[..., Exception]
) -> Callable[[str, Any, bool], Awaitable[Any]]:
    """Return the library's handler: every failure becomes an answer in words."""

    async def handle(method: str, params: Any, is_notification: bool) -> Any:
        try:
            answer: Mapping[str, Any] = await server.serve(
                method, params if isinstance(params, dict) else {}
            )
            return dict(answer)
        except UnknownMethod:
            raise request_error(-32601, f"cockpit has no method {method[:100]}.") from None
        except NotFound as error:
            raise request_error(_NOT_FOUND, str(error), {"code": error.code}) from None
        except CockpitError as error:
            code = _INVALID_PARAMS if error.code == _USAGE else _INTERNAL_ERROR
            raise request_error(code, str(error), {"code": error.code}) from None
        except Exception as error:
            if os.environ.get("COCKPIT_DEBUG"):
                raise
            words = f"cockpit failed: {type(error).__name__}. COCKPIT_DEBUG=1 prints more."
            raise request_error(_INTERNAL_ERROR, words) from None

    return handle


@contextmanager
def _claim_output() -> Iterator[int]:
    """Yield a descriptor of standard output. Meanwhile descriptor 1 is standard error, for stray output."""
    output = os.dup(1)
    os.dup2(2, 1)
    try:
        yield output
    finally:
        os.dup2(output, 1)
        os.close(output)


async def _open_streams(output: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_READ_AHEAD)
    source = os.fdopen(os.dup(0), "rb", buffering=0)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), source)
    sink = os.fdopen(os.dup(output), "wb", buffering=0)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, sink)
    transport.set_write_buffer_limits(high=0)  # so that a message is out when its sending returns
    return reader, asyncio.StreamWriter(transport, protocol, None, loop)
