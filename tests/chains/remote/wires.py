"""Connections between a machine and the NATS server that tests cut: nothing passes, neither side hears of it.

Everywhere that is a proxy on the loopback address. Where namespaces of the network can be made, it is also a
cable (veth) to a machine of its own, whose link is taken down.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from chains.remote.remote_world import Server

_COUNTED = itertools.count()


class Wire(Protocol):
    """A connection of one machine to the server."""

    @property
    def url(self) -> str:
        """The server's address from that machine."""

    @property
    def enter(self) -> tuple[str, ...]:
        """The beginning of a command that runs on that machine."""

    def cut(self) -> None:
        """Let nothing pass."""

    def mend(self) -> None:
        """Let everything pass again."""


class Proxy:
    """Passes on what comes; cut, it takes connections and bytes, and keeps them to itself."""

    enter: tuple[str, ...] = ()

    def __init__(self, port: int) -> None:
        self._port = port
        self._passes = threading.Event()
        self._passes.set()
        self._sockets: list[socket.socket] = []
        self._door = socket.create_server(("127.0.0.1", 0))
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self._door.getsockname()[1]}"

    def cut(self) -> None:
        self._passes.clear()

    def mend(self) -> None:
        self._passes.set()

    def close(self) -> None:
        for each in (self._door, *self._sockets):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        self._passes.set()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._door.accept()
                self._sockets.append(client)
                try:
                    server = socket.create_connection(("127.0.0.1", self._port))
                except OSError:
                    client.close()
                    continue
                self._sockets.append(server)
                for source, target in ((client, server), (server, client)):
                    thread = threading.Thread(target=self._pass, args=(source, target))
                    self._threads.append(thread)
                    thread.start()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                self._passes.wait()
                target.sendall(data)
        for each in (source, target):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


class Cable:
    """A machine of its own: a namespace of the network, whose only device leads to the server."""

    def __init__(self, server: Server) -> None:
        number = next(_COUNTED)
        self._here, self._there = f"ck{os.getpid()}h{number}", f"ck{os.getpid()}w{number}"
        self._machine = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        # Of 10.0.0.0/8, by process and number: tests at the same time have different ones.
        at = (os.getpid() * 16 + number) * 4 % (1 << 24)
        self.address = f"10.{at >> 16}.{at >> 8 & 255}.{at + 1 & 255}"
        other = f"10.{at >> 16}.{at >> 8 & 255}.{at + 2 & 255}"
        self._server = server
        while Path(f"/proc/{self._machine.pid}/comm").read_text() != "sleep\n":
            assert self._machine.poll() is None, "no namespace"
        peer = ("type", "veth", "peer", "name", self._there, "netns", str(self._machine.pid))
        _run("ip", "link", "add", self._here, *peer)
        _run("ip", "address", "add", f"{self.address}/30", "dev", self._here)
        _run("ip", "link", "set", self._here, "up")
        _run(*self.enter, "ip", "address", "add", f"{other}/30", "dev", self._there)
        self.mend()

    @property
    def url(self) -> str:
        return f"nats://{self.address}:{self._server.port}"

    @property
    def enter(self) -> tuple[str, ...]:
        return ("nsenter", f"--net=/proc/{self._machine.pid}/ns/net")

    def cut(self) -> None:
        _run(*self.enter, "ip", "link", "set", self._there, "down")

    def mend(self) -> None:
        _run(*self.enter, "ip", "link", "set", self._there, "up")

    def close(self) -> None:
        subprocess.run(["ip", "link", "delete", self._here], capture_output=True)
        self._machine.kill()
        self._machine.wait()


def _run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)


def _can_lay_cables() -> bool:
    """Whether this machine lets the tests make namespaces of the network and devices in them."""
    if not all(map(shutil.which, ("ip", "nsenter", "unshare"))):
        return False
    try:
        Cable(Server(Path())).close()
    except (OSError, subprocess.CalledProcessError, AssertionError):
        return False
    return True


FORMS = ("proxy", "cable") if _can_lay_cables() else ("proxy",)
"""The forms of a wire that this machine has."""


@contextlib.contextmanager
def wire(form: str, server: Server) -> Iterator[Wire]:
    """Lay a wire to the server, which listens on every address where the wire is a cable."""
    laid = Proxy(server.port) if form == "proxy" else Cable(server)
    try:
        yield laid
    finally:
        laid.close()
