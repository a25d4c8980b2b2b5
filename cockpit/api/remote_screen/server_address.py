"""Where ``cockpit --connect`` connects to, with which token, and whom it trusts.

Specified in ``docs/reference/connect.md``.
"""

from __future__ import annotations

import ipaddress
import os
import ssl
import stat
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from cockpit.access.capability_tokens import TOKEN_VARIABLE
from cockpit.core.errors import CockpitError

PORT = 8788
"""The port of ``cockpit web``, where an address names none."""
_LARGEST_TOKEN_FILE = 4_096


class WrongServer(CockpitError):
    """The address, the token or the certificates cannot be used."""

    code = "usage"


class Server(msgspec.Struct, frozen=True):
    """A server: a host and a port, over TLS or not, or a Unix socket."""

    host: str = ""
    port: int = 0
    is_encrypted: bool = False
    path: str = ""

    @property
    def name(self) -> str:
        """The server in messages."""
        if self.path:
            return self.path
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def read_address(text: str, *, allows_plain: bool = False) -> Server:
    """Return the server of ``https://HOST[:PORT]``, ``http://…`` or ``unix:PATH``.

    Raises :class:`WrongServer`. ``http`` leads to this machine alone, unless ``allows_plain``.
    """
    if text.startswith("unix:"):
        path = text.removeprefix("unix:").removeprefix("//")
        if not path:
            raise WrongServer(
                "unix: needs the path of a socket, for example unix:/run/cockpit.sock."
            )
        return Server(path=str(Path(path).expanduser().absolute()))
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise WrongServer(f"The address cannot be read: {error}.") from error
    if parts.scheme not in ("http", "https") or not host:
        raise WrongServer(
            "Write the server as https://HOST:PORT, http://127.0.0.1:PORT or unix:PATH."
        )
    if parts.username is not None or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise WrongServer(
            "Write the address without a path or a login: the token is read from COCKPIT_TOKEN or"
            " --token-file. A link of `cockpit web` is for browsers."
        )
    if parts.scheme == "http" and not (allows_plain or _is_loopback(host)):
        raise WrongServer(
            f"http://{host} is not encrypted: who is in between would read your token and press your"
            " keys. Use https, or forward the port with ssh. --plain-http connects all the same."
        )
    return Server(host, PORT if port is None else port, parts.scheme == "https")


def read_token(file: Path | None, environment: Mapping[str, str]) -> str:
    """Return the token of ``file``, else of ``COCKPIT_TOKEN``. Raises :class:`WrongServer`.

    The file must be yours, and closed to others.
    """
    token = environment.get(TOKEN_VARIABLE, "") if file is None else _read_token_file(file)
    token = token.strip()
    if not token:
        raise WrongServer(
            "There is no token. Set COCKPIT_TOKEN, or pass --token-file. On the server's machine `cockpit"
            " tokens issue --namespace laptop --scope screen.open --expires 30d` makes one."
        )
    if not token.isascii() or not token.isprintable() or " " in token:
        raise WrongServer("The token is not one of cockpit's: it has blanks or other characters.")
    return token


def load_trust(server: Server, ca_file: Path | None) -> ssl.SSLContext | None:
    """Return whom the client trusts: ``ca_file``, else the system's list; None without TLS.

    Raises :class:`WrongServer`.
    """
    if not server.is_encrypted:
        if ca_file is not None:
            raise WrongServer("--ca-file is for https:// alone.")
        return None
    try:
        context = ssl.create_default_context(cafile=None if ca_file is None else str(ca_file))
    except (OSError, ssl.SSLError) as error:
        raise WrongServer(f"{ca_file} cannot be used for certificates: {error}.") from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _read_token_file(file: Path) -> str:
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise WrongServer(f"{file} cannot be read: {error.strerror or error}.") from error
    try:
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode) or info.st_uid not in (os.geteuid(), 0):
            raise WrongServer(
                f"{file} is not a file of yours; its token was not read. Name one that you own."
            )
        if info.st_mode & 0o077:
            raise WrongServer(f"Others may read {file}. Close it first: chmod 600 {file}")
        return os.read(descriptor, _LARGEST_TOKEN_FILE).decode("utf-8", "replace")
    finally:
        os.close(descriptor)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
