"""Leave the screen on SIGTERM and SIGHUP, so that the terminal is restored first."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from textual.app import App

INTERRUPTED = 130


@contextmanager
def exit_on_signals(app: App[Any]) -> Iterator[None]:
    """Exit the app with code 130 on a request to end and when its terminal closes.

    A signal that is already ignored (under nohup) stays ignored.
    """
    loop = asyncio.get_running_loop()
    leave = partial(app.exit, return_code=INTERRUPTED)
    handled = [
        number
        for number in (signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) is not signal.SIG_IGN
    ]
    for number in handled:
        loop.add_signal_handler(number, leave)
    try:
        yield
    finally:
        for number in handled:
            loop.remove_signal_handler(number)
