"""Run a command, and print the processor time of it and of all that it started: ``cpu_time.py COMMAND…``.

On Linux processes whose parents have ended count as well: this process takes them in and waits for them.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import subprocess
import sys
import time

_PR_SET_CHILD_SUBREAPER = 36
_PATIENCE_S = 5.0


def main(command: list[str]) -> int:
    """Return the exit code of the command."""
    started = time.monotonic()
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # An interrupt of the terminal reaches the command as well, which ends by it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    code = subprocess.Popen(command, preexec_fn=_interrupt_by_default).wait()
    left = _wait_for_orphans()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    wall = time.monotonic() - started
    print(f"{used.ru_utime + used.ru_stime:.0f} CPU s, {wall:.0f} s by the clock", flush=True)
    if left:
        print("still running, not counted: some process that was started", flush=True)
    return code if code >= 0 else 128 - code


def _interrupt_by_default() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _wait_for_orphans() -> bool:
    """Wait for what was left running; True if some does not end."""
    end = time.monotonic() + _PATIENCE_S
    while time.monotonic() < end:
        try:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(0.02)
        except ChildProcessError:
            return False
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
