"""The address that HTTP clients reach: one named address or socket, and the host names of requests.

A page in a browser cannot reach it under another name or from another origin.
See ``docs/reference/http.md``.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
import stat
from pathlib import Path

from msgspec import Struct

from cockpit.core.errors import CockpitError

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_EVERY = ("", "0.0.0.0", "::")  # noqa: S104 - refused
_WEB_PORTS = {"http": 80, "https": 443}
_LONGEST_PATH = 107
_LOCAL = "localhost"


class CannotListen(CockpitError):
    """cockpit cannot listen on the address."""

    code = "usage"


class Address(Struct, frozen=True):
    """The address of a server. ``shown`` is the host as it is written in a URL, or a socket's path."""

    shown: str
    port: int
    names: tuple[str, ...]
    scheme: str = "http"
    """``http``, ``https``, or ``unix`` for a socket."""

    @property
    def url(self) -> str:
        if self.scheme == "unix":
            return f"unix:{self.shown}"
        return f"{self.scheme}://{self.shown}:{self.port}"

    @property
    def is_local(self) -> bool:
        """Whether only programs of this machine reach it."""
        return self.scheme == "unix" or self.names == _LOOPBACK

    @property
    def hosts(self) -> tuple[str, ...]:
        """List the values that a request's Host header may have."""
        if self.scheme == "unix":
            return self.names
        full = tuple(f"{name}:{self.port}" for name in self.names)
        return (*full, *self.names) if self.port == _WEB_PORTS[self.scheme] else full

    @property
    def origins(self) -> tuple[str, ...]:
        """List the values that a request's Origin header may have, when it has one."""
        if self.scheme == "unix":
            return ()  # no page of a browser reaches it
        return tuple(f"{self.scheme}://{host}" for host in self.hosts)


def listening(host: str, port: int, *, tls: bool = False) -> tuple[socket.socket, Address]:
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
    scheme = "https" if tls else "http"
    return listener, Address(shown, int(listener.getsockname()[1]), names, scheme)


def listening_at(path: Path) -> tuple[socket.socket, Address]:
    """Listen on a Unix socket that only its owner may use. Raises :class:`CannotListen`.

    A socket that a dead server left there is replaced; anything else is not.
    """
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if len(os.fsencode(path)) > _LONGEST_PATH:
            raise CannotListen(
                f"{path} is too long for a socket: {_LONGEST_PATH} bytes at most. Choose another --socket."
            )
        _remove_dead(path)
        before = os.umask(0o177)
        try:
            listener.bind(str(path))
        finally:
            os.umask(before)
        listener.listen(100)
    except OSError as error:
        listener.close()
        raise CannotListen(
            f"{path} cannot be listened on: {error.strerror or error}. Choose another --socket."
        ) from error
    except CannotListen:
        listener.close()
        raise
    return listener, Address(str(path), 0, (_LOCAL,), "unix")


def remove_socket(path: Path) -> None:
    """Remove the file of a Unix socket that nothing listens on any more."""
    with contextlib.suppress(OSError):
        if not _answers(path):
            path.unlink()


def _remove_dead(path: Path) -> None:
    try:
        info = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(info.st_mode) or info.st_uid != os.geteuid():
        raise CannotListen(f"{path} is there already, and is not a socket of yours.")
    if _answers(path):
        raise CannotListen(f"Another server listens on {path}. Choose another --socket.")
    path.unlink()


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(1)
        try:
            client.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
    return True


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
