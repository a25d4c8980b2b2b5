"""The driver of a terminal: input without a poll, output that nobody waits for, suspending, and loss.

Textual's own driver looks ten times a second whether the program ends, lets the screen wait for a terminal
that does not read, starts twice when it is continued twice, and spins on a terminal that is gone.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
import time
import tty
from codecs import getincrementaldecoder
from contextlib import suppress
from threading import Thread
from typing import Any

from textual import constants, events
from textual.drivers.linux_driver import (
    KITTY_DISAMBIGUATE_ESCAPE_CODES,
    KITTY_REPORT_ALL_KEYS,
    KITTY_REPORT_ASSOCIATED_TEXT,
    LinuxDriver,
)
from textual.geometry import Size
from textual.message import Message

from cockpit.app.terminal.announce import RESTORE_TITLE, SAVE_TITLE, has_title
from cockpit.app.terminal.far_key_times import LATEST_S, FarKeyTimes
from cockpit.app.terminal.key_parser import PAUSE_S, KeyParser, PasteFinder
from cockpit.app.terminal.terminal_writer import TerminalWriter
from cockpit.core.processes import has_job_control
from cockpit.core.terminal.far_terminal import GIVE_BACK, OFF, ON, VARIABLE, mark
from widgets.text.clean import unify_newlines

_READ = 65_536
_TICK_S = 0.1
_SETTLE_S = 0.2
_LAST_WORDS_S = 0.5
"""Seconds that a terminal may take to read how it is given back."""
_TOO_LATE = "The connection was slow: this key was not taken. Look again, then press it."
_KITTY_KEYS = KITTY_DISAMBIGUATE_ESCAPE_CODES | KITTY_REPORT_ALL_KEYS | KITTY_REPORT_ASSOCIATED_TEXT


class TerminalDriver(LinuxDriver):
    """Textual's driver of a terminal, mended where the terminal is slow, suspended or gone.

    ``on_lost`` of the application's terminal, when it has one, is called once reading or writing shows that
    nothing is at the other end.
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        # `cockpit 2>log` draws no screen into the log.
        streams = [stream for stream in (sys.__stderr__, sys.__stdout__) if stream is not None]
        self._output = next((stream for stream in streams if stream.isatty()), streams[0]).fileno()
        self._wake: tuple[int, int] | None = None
        """The ends of the pipe that wakes the input thread, while there is one."""
        self._writer: TerminalWriter | None = None
        self._lost = False
        self._far = FarKeyTimes() if os.environ.get(VARIABLE) else None
        """The terminal in a browser, where a server shows this screen there."""
        self.clicked_at = 0.0
        """When a button of the mouse went down last, in seconds of the monotonic clock."""
        signal.signal(signal.SIGTSTP, self._sigtstp_application)
        signal.signal(signal.SIGCONT, self._sigcont_application)

    # Taking the terminal and giving it back

    def start_application_mode(self) -> None:
        """Take the terminal, at the start and after another program had it."""
        if self._writer is not None or self._lost:
            return
        with suppress(termios.error):
            # The kernel stops a job in the background here, until it comes to the foreground.
            termios.tcsetattr(self.fileno, termios.TCSANOW, termios.tcgetattr(self.fileno))
        self._take_terminal()

    def _take_terminal(self) -> None:
        self._writer = TerminalWriter(self._output, self._report_loss, self._draw_again, self._far)
        self._writer.start()
        if self._far is not None:
            self.write(mark(ON))
        self._wake = os.pipe()
        signal.signal(signal.SIGWINCH, self._hear_resize)
        self._send_size()
        if has_title(os.environ):
            self.write(SAVE_TITLE)
        self.write("\x1b[?1049h")
        try:
            self.attrs_before = termios.tcgetattr(self.fileno)
        except termios.error:
            self.attrs_before = None
        else:
            self._set_raw_mode()
        self.write("\x1b[?25l")
        self.write("\x1b[?1004h")  # reports when the terminal gets and loses the focus
        if not constants.DISABLE_KITTY_KEY:
            self.write(f"\x1b[>{_KITTY_KEYS}u")
        self._start_input()
        self._request_terminal_sync_mode_support()
        self._query_in_band_window_resize()
        self._enable_bracketed_paste()
        self._disable_line_wrap()
        self._enable_mouse_support()

    def _set_raw_mode(self) -> None:
        modes = termios.tcgetattr(self.fileno)
        modes[tty.LFLAG] = self._patch_lflag(modes[tty.LFLAG])
        modes[tty.IFLAG] = self._patch_iflag(modes[tty.IFLAG])
        modes[tty.CC][termios.VMIN] = 1
        with suppress(termios.error):
            termios.tcsetattr(self.fileno, termios.TCSANOW, modes)

    def _start_input(self) -> None:
        self._key_thread = Thread(target=self._run_input_thread, name="terminal-input", daemon=True)
        self._key_thread.start()

    def stop_application_mode(self) -> None:
        """Give the terminal back."""
        if self._writer is None:
            return
        if self._far is not None:
            self.write(mark(OFF))
        super().stop_application_mode()
        if has_title(os.environ):
            self.write(RESTORE_TITLE)

    def disable_input(self) -> None:
        """Stop the input thread, which may be asleep."""
        if self._wake is None:
            return
        reader, writer = self._wake
        os.write(writer, b"\0")
        super().disable_input()
        self._wake = None
        os.close(reader)
        os.close(writer)

    def close(self) -> None:
        """End the output. A terminal that does not read is left as it is."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.stop(_LAST_WORDS_S)

    def give_back_by_force(self) -> None:
        """Leave all modes at once, in a program that cannot end in order."""
        if self._writer is None:
            return
        self._writer.write(GIVE_BACK)
        self._writer.stop(_LAST_WORDS_S)
        if self.attrs_before is not None:
            with suppress(termios.error):
                termios.tcsetattr(self.fileno, termios.TCSANOW, self.attrs_before)

    # Output

    def write(self, data: str) -> None:
        """Queue output. Without a terminal it is dropped: the whole screen is drawn when there is one."""
        if self._writer is not None:
            self._writer.write(data)

    @property
    def is_showing(self) -> bool:
        """True while the terminal is taken and reads what is written."""
        return self._writer is not None and not self._writer.is_behind

    def _draw_again(self) -> None:
        self._call_soon(self._app.refresh, True)

    def _call_soon(self, call: Any, *arguments: Any, **named: Any) -> None:
        def run() -> None:
            with self._app._context():
                call(*arguments, **named)

        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(run)

    def _report_loss(self) -> None:
        self._lost = True
        report = getattr(self._app, "report_lost_terminal", None)
        if report is not None:
            report()
        else:
            self._call_soon(self._app.exit)

    # Size

    def _hear_resize(self, number: int, frame: object) -> None:
        del number, frame
        if not self._in_band_window_resize:
            self._send_size()

    def _send_size(self) -> None:
        size = Size(*self._get_terminal_size())
        self._call_soon(self._app.post_message, events.Resize(size, size))

    # Suspending

    @property
    def has_shell(self) -> bool:
        """True when a shell waits that can bring a stopped program back."""
        return has_job_control()

    def suspend_to_shell(self) -> None:
        """Stop the whole job, and take the terminal again when the shell brings it back."""
        self.suspend_application_mode()
        # As the terminal does it on Ctrl+Z: programs that started this one wait in the same job.
        os.killpg(os.getpgrp(), signal.SIGSTOP)

    def _sigtstp_application(self, *_: object) -> None:
        """Stop. In an editor of the user's, this process stops with it."""
        if self._auto_restart:
            self._call_soon(self.suspend_to_shell)
        else:
            os.kill(os.getpid(), signal.SIGSTOP)

    def _sigcont_application(self, *_: object) -> None:
        """Go on: with a screen in the foreground, without one in the background."""
        if self._auto_restart:
            self._call_soon(self._come_back)

    def _come_back(self) -> None:
        if self._lost or not self._is_foreground() or not self._app._running:
            return
        if (
            self._writer is not None
        ):  # it was stopped without being asked: the shell changed the modes
            self._set_raw_mode()
            self._send_size()
        else:
            self._take_terminal()
            self._app.post_message(self.SignalResume())
        self._app.refresh(layout=True)

    def _is_foreground(self) -> bool:
        try:
            return os.tcgetpgrp(self.fileno) == os.getpgrp()
        except OSError:
            return (
                True  # not the terminal that controls this process: no shell gives it and takes it
            )

    # Input

    def process_message(self, message: Message) -> None:
        """Post an event of the terminal; the line breaks of a paste are all of one kind."""
        if isinstance(message, events.Paste):
            message = events.Paste(unify_newlines(message.text))
        if isinstance(message, events.MouseDown):
            self.clicked_at = message.time
        super().process_message(message)

    def run_input_thread(self) -> None:
        """Read keys and post their events until :meth:`disable_input` is called."""
        parser, pastes = KeyParser(self._debug), PasteFinder()
        decode = getincrementaldecoder("utf-8")("replace").decode
        # An escape that may begin a sequence becomes a key of its own when nothing follows in time.
        undecided_s = constants.ESCAPE_DELAY + _SETTLE_S
        tick_until = time.monotonic() + undecided_s
        wake = self._wake[0] if self._wake is not None else -1
        while True:
            undecided = time.monotonic() < tick_until
            patience_s = PAUSE_S if pastes.is_waiting else _TICK_S if undecided else None
            ready, _, _ = select.select([self.fileno, wake], [], [], patience_s)
            if wake in ready:
                return
            text = ""
            if self.fileno in ready:
                try:
                    typed = os.read(self.fileno, _READ)
                except OSError:
                    typed = b""
                tick_until = time.monotonic() + undecided_s
                if not typed:  # the terminal is gone, and would be readable for ever
                    self._report_loss()
                    return
                text = decode(typed)
            for keys, age_s in self._find_ages(text):
                self._handle_typed(keys, age_s, parser, pastes)

    def _find_ages(self, text: str) -> list[tuple[str, float]]:
        """Return what was typed, in parts with their age in seconds: more than none on a far terminal."""
        if self._far is None:
            return [(text, 0.0)]
        now, parts = time.monotonic(), []
        typed = self._far.take(text) if text else self._far.release()
        for keys, moment in typed:
            if now - moment <= LATEST_S:
                parts.append((keys, max(0.0, now - moment)))
            elif keys:
                self._call_soon(self._app.notify, _TOO_LATE)
        return parts

    def _handle_typed(
        self, text: str, age_s: float, parser: KeyParser, pastes: PasteFinder
    ) -> None:
        ended, keys = pastes.take(text, time.monotonic()) if text else (pastes.end(), "")
        typed: list[Message] = [events.Paste(ended)] if ended else []
        typed += parser.feed(keys) if keys else ()
        typed += parser.tick()
        for event in typed:
            event.time -= age_s
            self.process_message(event)
