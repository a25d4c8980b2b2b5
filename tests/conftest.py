"""What applies to every test."""

from __future__ import annotations

import signal

import warm

# Before the conftest of any folder, whose helpers name the server's command when they are imported.
warm.start_server()


def pytest_configure() -> None:
    """Reset signals to what a terminal gives.

    A shell that runs the tests in the background ignores some, and processes of tests would inherit that.
    """
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            default = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            signal.signal(number, default)
