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
from widget_pty_app import end_of

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).with_name("widget_pty_app.py")
MARK = "QUARRY"
TEXT = (
    "SEEN "
    f"\x1b]52;c;{MARK}\x07"
    f"\x1b]0;{MARK}\x1b\\"
    f"\x1b]8;;http://{MARK}\x1b\\\x1b]8;;\x1b\\"
    f"\x1bP{MARK}\x1b\\\x1b_{MARK}\x1b\\\x1b^{MARK}\x1b\\\x1bX{MARK}\x1b\\"
    f"\x9d52;c;{MARK}\x9c\x90{MARK}\x9c\x9f{MARK}\x9c"
    "\x1b[77;77H\x9b77;77H\u202e\u2066\u200b"
)
SMUGGLED = (MARK, "77;77", "\x9b", "\x9d", "\x90", "\u202e", "\u2066", "\u200b")


@pytest.fixture(scope="module")
def written() -> dict[str, bytes]:
    """What the app of each widget wrote, by its name, one after the other on one terminal."""
    out = bytes_on_a_terminal()
    parts = {}
    for name in (*WIDGETS, "raw"):
        parts[name], end, out = out.partition(end_of(name, 0).replace("\n", "\r\n").encode())
        assert end, (name, parts[name][-2_000:])
    return parts


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


@pytest.mark.parametrize("name", WIDGETS)
def test_nothing_smuggled_reaches_the_terminal(name, written):
    out = written[name]
    assert b"SEEN" in out
    assert not [each for each in SMUGGLED if each.encode() in out]


def test_this_test_would_see_it(written):
    out = written["raw"]
    assert MARK.encode() in out
    assert "\u202e".encode() in out
