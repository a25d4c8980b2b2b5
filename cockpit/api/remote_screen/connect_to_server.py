"""Open a line to the server of a screen, and say in words why none opens.

Specified in ``docs/reference/connect.md``.
"""

from __future__ import annotations

import ssl
from typing import Any

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidHandshake, InvalidMessage, InvalidStatus
from websockets.typing import Subprotocol

from cockpit.api.remote_screen.server_address import Server
from cockpit.api.web.screen_messages import CONNECT, PROTOCOL
from cockpit.core.errors import CockpitError

OPEN_S = 20.0
"""Seconds until a server must have answered."""
PING_S = 5.0
"""Seconds between two questions whether the server is there."""
PATIENCE_S = 20.0
"""Seconds for its answer; then the line counts as lost."""
_LARGEST = 1 << 20


class CannotConnect(CockpitError):
    """The server cannot be reached now; it may be later."""

    code = "cannot_connect"


class RefusedByServer(CockpitError):
    """The server, or the client's own check of it, refuses for good."""

    code = "not_allowed"


class _Problem(msgspec.Struct):
    """The members of a problem document that are used."""

    code: str = ""
    detail: str = ""


class _Connect(connect):
    """Follows no redirect: the token is for the server that the user named."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


async def open_line(server: Server, token: str, trust: ssl.SSLContext | None) -> ClientConnection:
    """Return a line to ``server``. Raises :class:`CannotConnect` and :class:`RefusedByServer`."""
    options: dict[str, Any] = {"ssl": trust} if trust is not None else {}
    host = server.name
    if server.path:
        options |= {"unix": True, "path": server.path}
        host = "localhost"
    try:
        line = await _Connect(
            f"{'wss' if server.is_encrypted else 'ws'}://{host}{CONNECT}",
            additional_headers={"Authorization": f"Bearer {token}"},
            subprotocols=[Subprotocol(PROTOCOL)],
            compression=None,
            proxy=None,
            open_timeout=OPEN_S,
            ping_interval=PING_S,
            ping_timeout=PATIENCE_S,
            close_timeout=1,
            max_size=_LARGEST,
            user_agent_header=None,
            **options,
        )
    except InvalidStatus as error:
        raise _explain_status(server, error) from error
    except ssl.SSLCertVerificationError as error:
        raise RefusedByServer(
            f"The certificate of {server.name} is not trusted: {error.verify_message}. Pass --ca-file for an"
            " authority of your own."
        ) from error
    except InvalidMessage as error:
        # It closed the line, or speaks something else.
        raise CannotConnect(
            f"{server.name} does not answer as `cockpit web` does. Is it https, or another program?"
        ) from error
    except InvalidHandshake as error:
        raise _explain_age(server) from error
    except OSError as error:
        reason = error.strerror or str(error) or "no answer"
        raise CannotConnect(f"{server.name} cannot be reached: {reason}.") from error
    if line.subprotocol != PROTOCOL:
        line.transport.abort()
        raise _explain_age(server)
    return line


def _explain_status(server: Server, error: InvalidStatus) -> CockpitError:
    try:
        answer = msgspec.json.decode(error.response.body or b"", type=_Problem)
    except (msgspec.DecodeError, UnicodeError):
        answer = _Problem()
    status = error.response.status_code
    if status >= 500:
        return CannotConnect(f"{server.name} answers {status}. {answer.detail}".strip())
    if not answer.code or not answer.detail:
        return _explain_age(server)
    return RefusedByServer(f"{server.name} refuses: {answer.detail}", code=answer.code)


def _explain_age(server: Server) -> RefusedByServer:
    return RefusedByServer(
        f"{server.name} shows no screens in terminals: it is not `cockpit web`, or that of an older version."
        " Use the same version of cockpit on both machines.",
        code="protocol_unknown",
    )
