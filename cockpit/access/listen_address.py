"""The address that HTTP clients reach: one named address, and the host names that requests may use.

A page in a browser cannot reach it under another name or from another origin.
See ``docs/reference/http.md``.
"""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass

from cockpit.core.errors import CockpitError

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_EVERY = ("", "0.0.0.0", "::")  # noqa: S104 - refused
_WEB_PORT = 80


class CannotListen(CockpitError):
    """cockpit cannot listen on the address."""

    code = "usage"


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a server. ``shown`` is the host as it is written in a URL."""

    shown: str
    port: int
    names: tuple[str, ...]

    @property
    def url(self) -> str:
        return f"http://{self.shown}:{self.port}"

    @property
    def hosts(self) -> tuple[str, ...]:
        """List the values that a request's Host header may have."""
        full = tuple(f"{name}:{self.port}" for name in self.names)
        return (*full, *self.names) if self.port == _WEB_PORT else full

    @property
    def origins(self) -> tuple[str, ...]:
        """List the values that a request's Origin header may have, when it has one."""
        return tuple(f"http://{host}" for host in self.hosts)


def listening(host: str, port: int) -> tuple[socket.socket, Address]:
    """Listen on ``host`` and ``port`` (0 takes a free one). Raises :class:`CannotListen`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        if host in _EVERY:
            raise CannotListen(
                f"{host or 'An empty address'} is every address of this machine, and Host could not be"
                " checked. Name the one address at which clients reach it."
            )
        listener = socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        raise CannotListen(
            f"{host}:{port} cannot be listened on: {error}. Choose another --port or --host."
        ) from error
    shown = f"[{host}]" if ":" in host else host
    names = _LOOPBACK if _is_loopback(host) else (shown,)
    return listener, Address(shown, int(listener.getsockname()[1]), names)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
