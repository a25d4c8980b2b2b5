"""A TCP line on loopback that delays, wavers, stalls in the middle of a frame, and breaks."""

from __future__ import annotations

import contextlib
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class SlowLine:
    """Forwards connections to a port. ``delay_s`` and ``jitter_s`` are for each direction, in order."""

    def __init__(self, target: int, *, delay_s: float = 0.0, jitter_s: float = 0.0) -> None:
        self._target = target
        self.delay_s, self.jitter_s = delay_s, jitter_s
        self._dice = random.Random(7)
        self._flows = threading.Event()
        self._flows.set()
        self._left: int | None = None
        """Bytes that still come from the server before the line stalls; None without a limit."""
        self._ends: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._accepts = True
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def stall(self, *, after: int = 0) -> None:
        """Let nothing through in both directions, once ``after`` more bytes came from the server."""
        if after:
            self._left = after
        else:
            self._flows.clear()

    def resume(self) -> None:
        """Let everything through again, in order."""
        self._left = None
        self._flows.set()

    @property
    def is_stalled(self) -> bool:
        return not self._flows.is_set()

    def cut(self) -> None:
        """Break every connection; new ones may be opened."""
        ends, self._ends = self._ends, []
        for end in ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def refuse(self, *, refuses: bool = True) -> None:
        """Break every connection, and each new one at once, until it is taken back."""
        self._accepts = not refuses
        if refuses:
            self.cut()

    def close(self) -> None:
        self._accepts = False
        self.resume()
        self.cut()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join()

    def _start(self, work: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            if not self._accepts:
                near.close()
                continue
            try:
                far = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                near.close()
                continue
            self._ends += [near, far]
            for source, end, is_answer in ((near, far, False), (far, near, True)):
                queue: list[tuple[float, bytes]] = []
                changed = threading.Condition()
                arguments = (source, queue, changed)
                self._start(self._read, *arguments)
                self._start(self._write, end, queue, changed, is_answer)

    def _read(
        self, source: socket.socket, queue: list[tuple[float, bytes]], changed: threading.Condition
    ) -> None:
        while True:
            try:
                data = source.recv(65_536)
            except OSError:
                data = b""
            due = time.monotonic() + self.delay_s + self._dice.random() * self.jitter_s
            with changed:
                queue.append((due, data))
                changed.notify()
            if not data:
                return

    def _write(
        self,
        end: socket.socket,
        queue: list[tuple[float, bytes]],
        changed: threading.Condition,
        is_answer: bool,
    ) -> None:
        while True:
            with changed:
                while not queue:
                    changed.wait()
                due, data = queue.pop(0)
            time.sleep(max(0.0, due - time.monotonic()))
            try:
                if not data:
                    end.shutdown(socket.SHUT_RDWR)
                    end.close()
                    return
                while data:
                    self._flows.wait()
                    size = len(data)
                    if is_answer and self._left is not None:
                        size = min(size, self._left)
                        self._left -= size
                        if self._left == 0:
                            self._left = None
                            self._flows.clear()
                    end.sendall(data[:size])
                    data = data[size:]
            except OSError:
                end.close()
                return


@contextmanager
def slow_line(target: int, *, delay_s: float = 0.0, jitter_s: float = 0.0) -> Iterator[SlowLine]:
    line = SlowLine(target, delay_s=delay_s, jitter_s=jitter_s)
    try:
        yield line
    finally:
        line.close()
