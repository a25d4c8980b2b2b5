"""The ingest worker, a detached process: waits a moment for more hook events, ingests all of them, and ends.

At most one runs in a project. It has the lease in ``hook_absorber``: a hook takes the lease for it in
the transaction that stores the event, and the worker releases it in the transaction that finds no
more events. So no event waits for a worker that has just ended. See ``docs/reference/hooks.md``.
"""

from __future__ import annotations

import os
import sys
import time

from cockpit.core.state_folder import DATABASE
from cockpit.hook import hook_log
from cockpit.store.hooks import pending_events

DEBOUNCE_S = 1.0
"""How long more is waited for; a commit or the end of a turn cuts it short."""
_LOOK_S = 0.05
_NICE = 5
_FILES = 256


def start_ingest_worker(state: str) -> None:
    """Start :mod:`cockpit.hook.ingest_worker` for the project with this state folder; raises ``OSError``.

    The worker inherits nothing from the agent: no terminal, and no pipe whose end the agent waits for.
    """
    # -P: the folder of the agent's project must never be where modules come from.
    argv = [sys.executable, "-P", "-m", "cockpit.hook.ingest_worker", state]
    quiet = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]
    os.posix_spawn(sys.executable, argv, os.environ, file_actions=quiet)


def main(state: str) -> int:
    """Ingest the hook events of the project with the state folder ``state``; returns the exit code."""
    _step_back()
    database = os.path.join(state, DATABASE)
    if not os.path.isfile(database):
        return 0
    try:
        _wait(database)
        # Only now: while more is coming, the agent's own processes have the machine.
        from cockpit.hook.ingest import serve

        serve(state, lambda: _wait(database))
    except Exception as error:
        hook_log.append_line(state, f"ingesting failed: {error}")
        return 1
    return 0


def _step_back() -> None:
    """Detach from the agent: leave its terminal's signals, lower the priority, and close inherited files."""
    os.closerange(3, _FILES)
    try:
        os.setsid()
    except PermissionError:
        pass  # this process leads a group already
    os.nice(_NICE)


def _wait(database: str) -> None:
    connection = pending_events.connect(database, 1_000)
    try:
        until = time.monotonic() + DEBOUNCE_S
        while time.monotonic() < until and not pending_events.count_waiting(
            connection, urgent=True
        ):
            time.sleep(_LOOK_S)
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
