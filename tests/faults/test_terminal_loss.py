"""A terminal that goes away ends the program: nothing is lost, nothing is left. More: ``make chaos``."""

from __future__ import annotations

import os
import threading

import pytest
from examples import examples
from faults import terminal_trials

from cockpit.app.terminal.terminal_writer import MOST_BYTES, TerminalWriter

pytestmark = pytest.mark.slow


@pytest.mark.search
@pytest.mark.parametrize("seed", range(examples(1)))
def test_the_terminal_goes_away(tmp_path, seed):
    verdict = terminal_trials.try_terminal(tmp_path / "trial", seed)
    assert verdict, f"{terminal_trials.Trial(seed)}: {verdict}"


class Pty:
    """A pseudo-terminal and a writer to it."""

    def __init__(self):
        self.main, self.end = os.openpty()
        self.lost = threading.Event()
        self.caught_up = threading.Event()
        self.writer = TerminalWriter(self.end, self.lost.set, self.caught_up.set)
        self.writer.start()

    def read(self, until: bytes) -> bytes:
        read = b""
        while until not in read:
            read += os.read(self.main, 65536)
        return read


def test_a_terminal_that_does_not_read_blocks_nobody():
    pty = Pty()
    frame = "\x1b[1;1H" + "x" * 10_000
    for _ in range(MOST_BYTES // 10_000 * 3):
        pty.writer.write(frame)
    pty.writer.write("\x1b]0;a title that is longer than a switch of modes, and no frame at all\a")
    assert not pty.caught_up.is_set()
    pty.read(b"no frame at all")
    assert pty.caught_up.wait(terminal_trials.PATIENCE_S)  # and the whole screen is drawn again
    assert pty.writer.stop(terminal_trials.PATIENCE_S)
    os.close(pty.main)
    os.close(pty.end)


def test_a_writer_ends_with_a_terminal_that_never_reads_again():
    pty = Pty()
    for _ in range(40):
        pty.writer.write("x" * 10_000)
    while not pty.writer.is_behind:
        threading.Event().wait(0.02)
    assert not pty.writer.stop(0.1)
    os.close(pty.main)
    assert pty.lost.wait(terminal_trials.PATIENCE_S)
    pty.writer.write("more")
    assert pty.writer.stop(terminal_trials.PATIENCE_S)
    os.close(pty.end)
