"""What holds for every test."""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    """Signals are what a terminal's are: who runs the tests in the background ignores some, and the
    processes that tests begin would inherit that."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            ours = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            signal.signal(number, ours)
