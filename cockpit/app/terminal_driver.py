"""The terminal's input without a poll: the input thread sleeps until a key comes.

Textual's own driver looks ten times a second whether the program ends. Here a pipe wakes the thread.
"""

from __future__ import annotations

import os
import select
import time
from codecs import getincrementaldecoder
from typing import Any

from textual import constants
from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver

_READ = 4_096
_TICK_S = 0.1
_SETTLE_S = 0.2


class SleepingDriver(LinuxDriver):
    """Textual's driver of a terminal, whose input thread does nothing while no key comes."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._wake: tuple[int, int] | None = None
        """The ends of the pipe that wakes the input thread, while there is one."""

    def start_application_mode(self) -> None:
        """Take the terminal, at the start and after another program had it."""
        if self._wake is None:
            self._wake = os.pipe()
        super().start_application_mode()  # type: ignore[no-untyped-call]  # as Textual has it

    def disable_input(self) -> None:
        """Stop the input thread, which may be asleep."""
        if self._wake is None or self.exit_event.is_set():
            return
        reader, writer = self._wake
        os.write(writer, b"\0")
        super().disable_input()
        self._wake = None
        os.close(reader)
        os.close(writer)

    def run_input_thread(self) -> None:
        """Read keys and post their events until :meth:`disable_input` is called."""
        parser = XTermParser(self._debug)
        decode = getincrementaldecoder("utf-8")().decode
        # An escape that may begin a sequence becomes a key of its own when nothing follows in time.
        undecided_s = constants.ESCAPE_DELAY + _SETTLE_S
        tick_until = time.monotonic() + undecided_s
        wake = self._wake[0] if self._wake is not None else -1
        descriptors = [self.fileno, wake]
        while True:
            undecided = time.monotonic() < tick_until
            ready, _, _ = select.select(descriptors, [], [], _TICK_S if undecided else None)
            if wake in ready:
                return
            if self.fileno in ready:
                typed = os.read(self.fileno, _READ)
                tick_until = time.monotonic() + undecided_s
                if not typed:  # the terminal is gone, and would be readable for ever
                    descriptors = [wake]
                    continue
                text = decode(typed)
                for event in parser.feed(text) if text else ():
                    self.process_message(event)
            for event in parser.tick():
                self.process_message(event)
