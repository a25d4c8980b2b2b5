"""Sockets of the cockpits that are open on a project: how a hook call finds somebody who answers.

Each open cockpit listens on a socket of its own in the project's state folder, which only the user may
enter. A socket tells both ends at once when the other is gone, however it ended. A hook call loads this
module, so it imports little. See ``docs/reference/hooks.md``, approving.
"""

from __future__ import annotations

import os
import socket
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = "open"
"""The folder in the project's state folder."""
_SUFFIX = ".sock"
_LONGEST = 100
"""Bytes of a socket's path; systems allow between 104 and 108."""
_CONNECT_S = 0.5


def list_sockets(state: str) -> list[str]:
    """List the sockets of the project with the state folder ``state``, some perhaps of dead processes."""
    folder = os.path.join(state, FOLDER)
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    return [os.path.join(folder, name) for name in names if name.endswith(_SUFFIX)]


def connect(path: str) -> socket.socket | None:
    """Connect to an open cockpit; None where its process is gone or does not listen."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(_CONNECT_S)
    try:
        with _short(path) as address:
            connection.connect(address)
    except OSError:
        connection.close()
        return None
    return connection


def listen(state: str) -> tuple[socket.socket, str]:
    """Listen for hook calls in the project's state folder; returns the socket and its path.

    Removes the sockets of processes that are gone. Raises ``OSError``.
    """
    folder = os.path.join(state, FOLDER)
    _make_private(folder)
    for path in list_sockets(state):
        other = connect(path)
        if other is None:
            _remove(path)
        else:
            other.close()
    path = os.path.join(folder, f"{os.getpid()}{_SUFFIX}")
    _remove(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _short(path) as address:
            listener.bind(address)
        os.chmod(path, 0o600)
        listener.listen(64)
    except BaseException:
        listener.close()
        raise
    listener.setblocking(False)
    return listener, path


def stop_listening(listener: socket.socket, path: str) -> None:
    """Close the socket and remove its file."""
    listener.close()
    _remove(path)


@contextmanager
def _short(path: str) -> Iterator[str]:
    """Yield an address of ``path`` that is short enough for a socket."""
    if len(os.fsencode(path)) <= _LONGEST:
        yield path
        return
    folder = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{os.path.basename(path)}"
    finally:
        os.close(folder)


def _make_private(folder: str) -> None:
    """Create the folder for the user alone; one that is open to others is closed to them."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    os.chmod(folder, 0o700)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
