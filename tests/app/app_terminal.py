"""The program in a real pseudo-terminal: keys in, every byte that it writes out."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

import run_cockpit

PATIENCE_S = 60.0
SGR = re.compile(rb"\x1b\[([0-9;]*)m")
COLD = (sys.executable, "-m", "cockpit")
ASKS = """
[[turn]]
text = "I need the file."
[[turn.call]]
name = "request_context"
arguments = { purpose = "look", question = "what is there?", scope = ["file:calc.py"] }

[[turn]]
when = { called = ["request_context"] }
text = "I have seen it."
[[turn.call]]
name = "finish"
arguments = { status = "done", summary = "seen" }
"""
"""A model that asks for a file, then is done."""
_SHELL = ("bash", "--norc", "--noprofile", "-i")


def read_colours(wrote: bytes) -> set[bytes]:
    """Return the codes of colours and styles in what was written."""
    return {code for found in SGR.findall(wrote) for code in found.split(b";") if code}


def _control_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Terminal:
    """``cockpit WORDS`` on a terminal of 120 columns and 40 rows.

    It has the user unless ``is_cold``. With ``in_shell`` it is ``bash``, whose jobs the terminal controls.
    """

    def __init__(
        self,
        *words: str,
        cwd: Path,
        env: dict[str, str] | None = None,
        is_cold: bool = False,
        in_shell: bool = False,
    ) -> None:
        self._main, end = pty.openpty()
        fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        command = COLD if is_cold else _SHELL if in_shell else run_cockpit.PROGRAM
        self._program = subprocess.Popen(
            [*command, *words],
            stdin=end,
            stdout=end,
            stderr=end,
            cwd=cwd,
            start_new_session=True,
            preexec_fn=_control_terminal if in_shell else None,
            env={**os.environ, "TERM": "xterm-256color", **(env or {})},
        )
        os.close(end)
        self.wrote = b""

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self._program.kill()
        self._program.wait()
        os.close(self._main)

    def send(self, number: int) -> None:
        """Send the program a signal."""
        self._program.send_signal(number)

    def press(self, keys: bytes) -> None:
        """Type."""
        os.write(self._main, keys)

    def until(self, *texts: str, after: int = 0) -> int:
        """Read until one of ``texts`` was written after the byte ``after``; returns where reading stands."""
        deadline = time.monotonic() + PATIENCE_S
        while not any(text.encode() in self.wrote[after:] for text in texts):
            assert time.monotonic() < deadline, f"{texts} never came: {self.wrote[-2000:]!r}"
            assert self._read(), f"it ended before {texts}: {self.wrote[-2000:]!r}"
        return len(self.wrote)

    def press_until(self, keys: bytes, text: str, *, too_early: str, after: int) -> int:
        """Press keys that count once something has been seen for a while, again where they came too early.

        Returns where ``text`` ends: what follows it may have been read as well.
        """
        while True:
            self.pause()
            start = len(self.wrote)
            self.press(keys)
            deadline = time.monotonic() + PATIENCE_S
            while not (is_there := text.encode() in self.wrote[after:]):
                assert time.monotonic() < deadline, f"{text!r} never came: {self.wrote[-2000:]!r}"
                assert self._read(), f"it ended before {text!r}: {self.wrote[-2000:]!r}"
                if too_early.encode() in self.wrote[start:]:
                    break
            if is_there:
                return self.wrote.index(text.encode(), after) + len(text.encode())

    def wait_for(self, true: Callable[[], object]) -> None:
        """Read until ``true``, which looks at something else than what is written."""
        deadline = time.monotonic() + PATIENCE_S
        while not true():
            assert time.monotonic() < deadline, f"it never came to that: {self.wrote[-2000:]!r}"
            self._read(0.05)

    def pause(self) -> None:
        """Read for a second, as a person would, so that keys that count after half of one count."""
        until = time.monotonic() + 1
        while (left := until - time.monotonic()) > 0 and self._read(left):
            continue

    def ends(self) -> int:
        """Read to the end; returns the exit code."""
        deadline = time.monotonic() + PATIENCE_S
        while self._read():
            assert time.monotonic() < deadline, f"it does not end: {self.wrote[-2000:]!r}"
        return self._program.wait(PATIENCE_S)

    def _read(self, patience_s: float = 1.0) -> bool:
        ready, _, _ = select.select([self._main], [], [], patience_s)
        if not ready:
            return True
        try:
            chunk = os.read(self._main, 65536)
        except OSError:
            return False
        self.wrote += chunk
        return bool(chunk)
