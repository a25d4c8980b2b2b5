"""Where an external agent works: the checkout, or a worktree and branch of its own.

See ``docs/reference/agents.md``, sessions.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from cockpit.core.processes import is_process_alive
from cockpit.loop.runtime import Runtime
from cockpit.store.sessions import sessions

_NAMES = 1_000


async def choose_folder(runtime: Runtime, agent: str, *, own: bool) -> Path | None:
    """Return a new worktree for the agent, or None for the checkout.

    ``own`` asks for a worktree. Without it the checkout is for one agent at a time: the second gets a
    worktree, unless the project is no repository. Raises ``WorktreeError``.
    """
    place = runtime.place
    root = str(place.root)
    is_taken = await runtime.store.read(lambda connection: _works_in(connection, root))
    if not own and not (is_taken and place.git):
        return None
    from cockpit.tasks.worktree import PREFIX, ensure_chain_worktree

    name = runtime.store.ids.new("w").removeprefix("w-")
    worktree = await ensure_chain_worktree(
        runtime.store, place, f"{PREFIX}{agent}-{name}", chain_id=""
    )
    return Path(worktree.path)


def _works_in(connection: sqlite3.Connection, root: str) -> bool:
    """Whether an agent that runs works in this folder."""
    return any(
        session.pid and session.cwd == root and is_process_alive(session.pid)
        for session in sessions.select_of_agents(connection, _NAMES)
    )
