"""Leave the screen when its terminal goes away or a signal asks for it, and end even where the screen hangs.

A thread waits for the terminal's end and for signals, so that it hears them whatever the event loop does. It
asks the screen to leave, and ends the program by force when that takes too long.
"""

from __future__ import annotations

import asyncio
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from textual.app import App

from cockpit.core.processes import kill_children

INTERRUPTED = 130
LOST_S = 1.7
"""Seconds that the program may take to leave once its terminal is gone."""
ASKED_S = 5.0
"""Seconds that it may take to leave on SIGTERM, with a terminal to give back."""
_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
_STOP = b"\0"
_LOST = b"\xff"
_BACKSTOP_S = 1.0


class TerminalWatch:
    """Waits for the end of a terminal, and for signals, in a thread of its own.

    ``leave`` is called in the event loop, once. ``end_by_force`` is called in the thread when the program
    still runs after :data:`LOST_S` or :data:`ASKED_S`; the program ends after it. Times are real seconds:
    they limit how long a program without a terminal may live.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        leave: Callable[[], object],
        end_by_force: Callable[[], object],
    ) -> None:
        self.is_leaving = False
        self.is_lost = False
        """True once the terminal is gone."""
        self.ignores_interrupt = False
        """True while another program has the terminal: Ctrl+C there is meant for it alone."""
        self._loop = loop
        self._leave = leave
        self._end_by_force = end_by_force
        self._woken, self._waker = socket.socketpair()
        self._waker.setblocking(False)
        self._deadline = float("inf")
        self._handlers: dict[signal.Signals, Any] = {}
        self._wakeup_before = -1
        self._alarm_before: Any = None
        self._thread = threading.Thread(target=self._watch, name="terminal-watch", daemon=True)

    def start(self) -> None:
        """Begin to watch. A signal that is ignored (as under nohup) stays ignored."""
        self._wakeup_before = signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)
        for number in _SIGNALS:
            if (handler := signal.getsignal(number)) is not signal.SIG_IGN:
                self._handlers[number] = handler
                # The thread hears of it, also while this thread is busy.
                signal.signal(number, _hear)
        self._alarm_before = signal.signal(signal.SIGALRM, signal.SIG_DFL)
        self._thread.start()

    def stop(self) -> None:
        """Watch no longer, unless the program is leaving: then its end stays watched."""
        signal.set_wakeup_fd(self._wakeup_before)
        if self.is_leaving:
            return  # a second signal must not break off what is saved now
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        signal.signal(signal.SIGALRM, self._alarm_before)
        self._send(_STOP)
        self._thread.join()
        self._woken.close()
        self._waker.close()

    def report_loss(self) -> None:
        """Note that the terminal is gone. May be called in any thread."""
        self._send(_LOST)

    def _send(self, byte: bytes) -> None:
        with suppress(OSError):  # full: the thread is awake anyway
            self._waker.send(byte)

    def _watch(self) -> None:
        poll = select.poll()
        poll.register(self._woken, select.POLLIN)
        terminal = _open_terminal()
        if terminal is not None:
            poll.register(terminal, 0)  # only for its end, of which poll always reports
        while True:
            left_s = self._deadline - time.monotonic()
            if left_s <= 0:
                self._end_now()
            ready = poll.poll(left_s * 1_000 if left_s != float("inf") else None)
            for descriptor, event in ready:
                if descriptor != terminal:
                    if self._hear_bytes(self._woken.recv(64)):
                        return
                    continue
                poll.unregister(terminal)
                if event & (
                    select.POLLHUP | select.POLLERR
                ):  # else this system cannot poll terminals
                    self._lose()

    def _hear_bytes(self, heard: bytes) -> bool:
        """Act on the bytes that woke the thread; return True when it is to stop."""
        for byte in heard:
            if byte == _LOST[0]:
                self._lose()
            elif byte == signal.SIGHUP and byte in self._handlers:
                self._ask_to_leave(LOST_S)
            elif byte == signal.SIGINT and self.ignores_interrupt:
                continue
            elif byte in (signal.SIGTERM, signal.SIGINT) and byte in self._handlers:
                self._ask_to_leave(ASKED_S)
        return _STOP in heard

    def _lose(self) -> None:
        self.is_lost = True
        self._ask_to_leave(LOST_S)

    def _ask_to_leave(self, within_s: float) -> None:
        self._deadline = min(self._deadline, time.monotonic() + within_s)
        # The system ends it where no thread can: while a library computes without letting other threads run.
        left_s = max(self._deadline - time.monotonic(), 0)
        signal.setitimer(signal.ITIMER_REAL, left_s + _BACKSTOP_S)
        if self.is_leaving:
            return
        self.is_leaving = True
        with suppress(RuntimeError):  # the loop has ended: the program is about to
            self._loop.call_soon_threadsafe(self._leave)

    def _end_now(self) -> None:
        try:
            try:
                self._end_by_force()
            finally:
                kill_children()
        finally:
            os._exit(INTERRUPTED)


def _hear(number: int, frame: object) -> None:
    """Take a signal, which has woken the watching thread."""
    del number, frame


def _open_terminal() -> int | None:
    """Return a descriptor of the screen's terminal; None without one."""
    for stream in (sys.__stdin__, sys.__stdout__, sys.__stderr__):
        with suppress(AttributeError, ValueError, OSError):
            if stream is not None and os.isatty(stream.fileno()):
                return stream.fileno()
    return None


@contextmanager
def watch_terminal(
    app: App[Any],
    *,
    save: Callable[[], object] = lambda: None,
    give_back: Callable[[], object] = lambda: None,
) -> Iterator[TerminalWatch]:
    """Exit ``app`` with code 130 when its terminal closes or a signal asks for it.

    ``save`` saves what the user typed; it is called first, and again in another thread where the program is
    ended by force. ``give_back`` restores the terminal then.
    """

    def leave() -> None:
        save()
        app.exit(return_code=INTERRUPTED)

    def end_by_force() -> None:
        save()
        if not watch.is_lost:
            give_back()

    watch = TerminalWatch(asyncio.get_running_loop(), leave, end_by_force)
    watch.start()
    try:
        yield watch
    finally:
        watch.stop()
