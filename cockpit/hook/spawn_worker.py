"""Start the ingest worker as a detached process, so that the hook call need not wait for it."""

from __future__ import annotations

import os
import sys


def start_ingest_worker(home: str) -> None:
    """Start :mod:`cockpit.hook.ingest_worker` for the project in ``home``; raises ``OSError``.

    The worker inherits nothing from the agent: no terminal, and no pipe whose end the agent waits for.
    """
    # -P: the folder of the agent's project must never be where modules come from.
    argv = [sys.executable, "-P", "-m", "cockpit.hook.ingest_worker", home]
    quiet = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]
    os.posix_spawn(sys.executable, argv, os.environ, file_actions=quiet)
