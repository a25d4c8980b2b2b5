"""Read ``[mcp.NAME]``: MCP servers whose tools the built-in agent may be offered.

The user's own configuration names them, because cockpit runs the named program. A project's file can switch
one off or offer fewer of its tools. Specified in ``docs/reference/tools.md``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from cockpit.act.mcp_servers.server_settings import McpServer
from cockpit.config.setting import OutOfBounds
from cockpit.core.read_record import convert

_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}", re.ASCII)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}", re.ASCII)
_HEADER = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,63}", re.ASCII)
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_Seconds = Annotated[float, msgspec.Meta(ge=1, le=600)]


class _ServerTable(msgspec.Struct, forbid_unknown_fields=True):
    command: list[Annotated[str, msgspec.Meta(min_length=1)]] = []
    url: str = ""
    env: list[str] = []
    headers: dict[str, str] = {}
    allow: list[str] = []
    reads: list[str] = []
    tools: list[str] | None = None
    sandbox: bool = True
    network: bool = False
    write: bool = False
    read_places: list[str] = []
    write_places: list[str] = []
    timeout_s: _Seconds = 60.0
    start_timeout_s: _Seconds = 30.0
    enabled: bool = True


class _ProjectTable(msgspec.Struct, forbid_unknown_fields=True):
    tools: list[str] | None = None
    enabled: bool | None = None


def read_servers(body: Mapping[str, Any]) -> dict[str, McpServer]:
    """Read the servers of the user's table ``[mcp]``, by name.

    Raises :class:`OutOfBounds`, whose message names the server and what is allowed.
    """
    return {name: _read_server(name, table) for name, table in body.items()}


def tighten_servers(
    servers: Mapping[str, McpServer], body: Mapping[str, Any]
) -> dict[str, McpServer]:
    """Return the servers as a project's table ``[mcp]`` tightens them.

    Raises :class:`OutOfBounds` for anything but ``enabled = false`` and fewer ``tools``.
    """
    tightened = dict(servers)
    for name, table in body.items():
        where = f"[mcp.{name[:40]}]"
        try:
            wanted = convert(table, _ProjectTable)
        except msgspec.ValidationError as error:
            raise OutOfBounds(
                f"{where}: {error}. A repository may only set enabled = false and tools here, because it may"
                " not name programs that run on your machine, nor what is approved without you"
            ) from error
        if wanted.enabled:
            raise OutOfBounds(f"{where} enabled can only be false here")
        server = tightened.get(name)
        if server is None:
            continue  # the user does not have it, so there is nothing to tighten
        if wanted.tools is not None:
            before = server.tools
            kept = tuple(tool for tool in wanted.tools if before is None or tool in before)
            server = replace(server, tools=kept)
        tightened[name] = replace(server, enabled=server.enabled and wanted.enabled is None)
    return tightened


def _read_server(name: str, table: object) -> McpServer:
    where = f"[mcp.{name[:40]}]"
    if _NAME.fullmatch(name) is None:
        raise OutOfBounds(
            f"{where}: the name of a server is 1 to 32 lower-case letters, digits and -, first a letter"
        )
    try:
        server = convert(table, _ServerTable)
    except msgspec.ValidationError as error:
        raise OutOfBounds(f"{where}: {error}") from error
    if bool(server.command) == bool(server.url):
        raise OutOfBounds(f"{where} needs either command or url, exactly one of the two")
    if server.command:
        _check_command(where, server.command)
    else:
        _check_url(where, server)
    for variable in (*server.env, *server.headers.values()):
        if _VARIABLE.fullmatch(variable) is None:
            raise OutOfBounds(
                f"{where} has {variable[:40]!r} where the name of a variable belongs; values stay in the"
                " environment"
            )
    for header in server.headers:
        if _HEADER.fullmatch(header) is None:
            raise OutOfBounds(
                f"{where} headers has {header[:40]!r}, which is not a name of a header"
            )
    return McpServer(
        name=name,
        command=tuple(server.command),
        url=server.url,
        env=tuple(server.env),
        headers=server.headers,
        allow=tuple(server.allow),
        reads=tuple(server.reads),
        tools=None if server.tools is None else tuple(server.tools),
        sandbox=server.sandbox,
        network=server.network,
        write=server.write,
        read_places=_read_places(where, server.read_places),
        write_places=_read_places(where, server.write_places),
        timeout_s=server.timeout_s,
        start_timeout_s=server.start_timeout_s,
        enabled=server.enabled,
    )


def _check_command(where: str, command: list[str]) -> None:
    program = command[0]
    if "/" in program and not program.startswith("/"):
        raise OutOfBounds(
            f"{where} command begins with {program[:80]!r}, which would run a program of the project; name a"
            " program on the PATH, or by its absolute path"
        )
    if any("\0" in word for word in command):
        raise OutOfBounds(f"{where} command has a NUL character")


def _check_url(where: str, server: _ServerTable) -> None:
    address = urlsplit(server.url)
    is_local = address.hostname in _LOOPBACK
    if address.scheme not in ("https", "http") or not address.hostname:
        raise OutOfBounds(f"{where} url is {server.url[:80]!r}; write an https address")
    if address.scheme == "http" and not is_local:
        raise OutOfBounds(f"{where} url is not encrypted; use https, or an address of this machine")
    if address.username or address.password:
        raise OutOfBounds(
            f'{where} url has a password in it; name a variable: headers.Authorization = "VARIABLE"'
        )
    if server.env or server.write or server.read_places or server.write_places:
        raise OutOfBounds(f"{where} has settings of a program, and url names none")


def _read_places(where: str, places: list[str]) -> tuple[Path, ...]:
    paths = tuple(Path(place).expanduser() for place in places)
    for path in paths:
        if not path.is_absolute() or path == Path("/"):
            raise OutOfBounds(f"{where} has the place {str(path)!r}; list absolute paths, or in ~")
    return paths
