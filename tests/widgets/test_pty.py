"""The bytes on a real terminal carry no control sequence from a text."""

import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from widget_cases import WIDGETS
from widget_pty_app import END, mark_of

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).with_name("widget_pty_app.py")
MARK = "QUARRY"
TEXT = (
    f"\x1b]52;c;{MARK}\x07"
    f"\x1b]0;{MARK}\x1b\\"
    f"\x1b]8;;http://{MARK}\x1b\\\x1b]8;;\x1b\\"
    f"\x1bP{MARK}\x1b\\\x1b_{MARK}\x1b\\\x1b^{MARK}\x1b\\\x1bX{MARK}\x1b\\"
    f"\x9d52;c;{MARK}\x9c\x90{MARK}\x9c\x9f{MARK}\x9c"
    "\x1b[77;77H\x9b77;77H\u202e\u2066\u200b"
)
SMUGGLED = (MARK, "77;77", "\x9b", "\x9d", "\x90", "\u202e", "\u2066", "\u200b")


def bytes_on_a_terminal() -> bytes:
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    environment = {
        **os.environ,
        "TEXT": json.dumps(TEXT),
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
    }
    program = subprocess.Popen(
        [sys.executable, str(PROGRAM)],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env=environment,
        start_new_session=True,
    )
    os.close(follower)
    out = b""
    try:
        while True:
            try:
                part = os.read(leader, 65_536)
            except OSError:  # Linux answers EIO once the other end is closed
                break
            if not part:
                break
            out += part
        assert program.wait(timeout=60) == 0, out[-2_000:]
    finally:
        program.kill()
        program.wait()
        os.close(leader)
    return out


def test_nothing_smuggled_reaches_the_terminal() -> None:
    out, end, raw = bytes_on_a_terminal().partition(END.format(0).encode())
    assert end, out[-2_000:]
    assert [name for name in WIDGETS if mark_of(name).encode() not in out] == []
    assert [each for each in SMUGGLED if each.encode() in out] == []
    # This test would see it.
    assert MARK.encode() in raw
    assert "\u202e".encode() in raw
