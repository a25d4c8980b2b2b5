"""How every command ends when the system asks it to."""

from __future__ import annotations

import signal
import threading


def end_as_by_the_keyboard() -> None:
    """A request to end, or a terminal that closes, ends every command as Ctrl+C does."""
    if threading.current_thread() is not threading.main_thread():
        return
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:  # under nohup it is ignored, and stays so
            signal.signal(number, lambda *_: signal.raise_signal(signal.SIGINT))
