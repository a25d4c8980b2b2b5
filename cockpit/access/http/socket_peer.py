"""Which processes of this machine are at the other end of a connection, by the tables of procfs.

A bearer token can be read by any program of the user. What only the user decides is therefore also asked of
the process that sent it: see :mod:`cockpit.access.user_presence` and ``docs/reference/security.md``.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import sys
from pathlib import Path

from cockpit.access import user_presence

Address = tuple[str, int]
"""A host in numbers, and a port."""

_TABLES = ("tcp", "tcp6")


def explain_peer_absence(client: Address | None, server: Address | None) -> str:
    """Say why the process at the ``client`` end of a connection does not act for a user at a terminal.

    Empty where it does, for every process that has the connection open.
    """
    if client is None or server is None:
        return "the process that asks is not known"
    if not Path("/proc/net/tcp").exists():
        return "this system does not say which process asks"
    pids = find_peers(client, server)
    if not pids:
        return "the process that asks is not one of yours on this machine"
    return next(filter(None, map(user_presence.explain_absence_of, pids)), "")


def find_peers(client: Address, server: Address) -> list[int]:
    """List the processes that hold the ``client`` end of a TCP connection to ``server``, by id."""
    inode = _find_inode(client, server)
    if not inode:
        return []
    wanted = f"socket:[{inode}]"
    pids = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        try:
            with os.scandir(folder / "fd") as entries:
                if any(_leads_to(entry.path, wanted) for entry in entries):
                    pids.append(int(folder.name))
        except OSError:
            continue  # of another user, or gone
    return pids


def _find_inode(client: Address, server: Address) -> str:
    for table in _TABLES:
        try:
            lines = Path("/proc/net", table).read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if (_read_address(fields[1]), _read_address(fields[2])) == (
                _plain(client),
                _plain(server),
            ):
                return fields[9]
    return ""


def _read_address(text: str) -> Address:
    """Read an address of procfs: words of the address in the machine's order, and the port."""
    number, _, port = text.partition(":")
    raw = bytes.fromhex(number)
    if sys.byteorder == "little":
        raw = b"".join(raw[at : at + 4][::-1] for at in range(0, len(raw), 4))
    family = socket.AF_INET if len(raw) == 4 else socket.AF_INET6
    return _plain((socket.inet_ntop(family, raw), int(port, 16)))


def _plain(address: Address) -> Address:
    """Return an address in one form: IPv4 inside IPv6 is the same one."""
    host = ipaddress.ip_address(address[0].partition("%")[0])
    mapped = host.ipv4_mapped if isinstance(host, ipaddress.IPv6Address) else None
    return str(mapped or host), address[1]


def _leads_to(path: str, wanted: str) -> bool:
    try:
        return str(Path(path).readlink()) == wanted
    except OSError:
        return False
