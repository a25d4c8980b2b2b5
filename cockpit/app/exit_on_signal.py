"""Leaving the screen because the process is asked to end: the terminal is given back first."""

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
def gives_back(app: App[Any]) -> Iterator[None]:
    """While this holds, a request to end and a terminal that closes leave the app, with 130.

    A signal that is ignored already (under nohup) stays so.
    """
    loop = asyncio.get_running_loop()
    leave = partial(app.exit, return_code=INTERRUPTED)
    taken = [
        number
        for number in (signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) is not signal.SIG_IGN
    ]
    for number in taken:
        loop.add_signal_handler(number, leave)
    try:
        yield
    finally:
        for number in taken:
            loop.remove_signal_handler(number)
