"""The process behind the hooks: waits a moment for more, absorbs all, and ends.

At most one runs in a project: it holds the lease in ``hook_absorber``, which a hook takes for it in the
transaction that keeps the event, and it gives the lease back in the transaction that finds nothing
left. So no event waits for a process that has just gone.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from cockpit.hook import logbook
from cockpit.hook.absorb import absorb_all
from cockpit.store import hook_pending
from cockpit.store.database import Store
from cockpit.store.place import Place

DEBOUNCE_S = 1.0
"""How long more is waited for; a commit or the end of a turn cuts it short."""
_LOOK_S = 0.05


def main(home: str) -> int:
    """Absorb what the hooks of the project in ``home`` have told; returns the exit code."""
    try:
        os.setsid()
    except OSError:
        pass  # it leads a group already
    top = Path(home)
    place = Place(root=top, home=top, git=(top / ".git").exists())
    if not place.database.is_file():
        return 0
    try:
        with Store.open(place.database) as store:
            _serve(store, place.state)
    except Exception as error:
        logbook.note(str(place.state), f"absorbing failed: {error}")
        return 1
    return 0


def _serve(store: Store, state: Path) -> None:
    while True:
        _wait(store)
        store.write_now(lambda tx: hook_pending.renew(tx.connection, _now_ms()))
        absorb_all(store, state)
        if store.write_now(lambda tx: hook_pending.release(tx.connection)):
            return


def _wait(store: Store) -> None:
    until = store.clock.monotonic() + DEBOUNCE_S
    while store.clock.monotonic() < until:
        if store.read_now(lambda connection: hook_pending.waiting(connection, urgent=True)):
            return
        time.sleep(_LOOK_S)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
