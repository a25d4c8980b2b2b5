"""A connection to the NATS server that tests cut: nothing passes, and neither side hears of it."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

from chains.remote.remote_world import Server


class Proxy:
    """Passes on what comes; cut, it takes connections and bytes, and keeps them to itself."""

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


@contextlib.contextmanager
def proxy(server: Server) -> Iterator[Proxy]:
    """Lay a wire to the server."""
    laid = Proxy(server.port)
    try:
        yield laid
    finally:
        laid.close()
