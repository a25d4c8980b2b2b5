"""Where an external agent works: the checkout, or a worktree and branch of its own.

See ``docs/reference/agents.md``, sessions.
"""

from __future__ import annotations

from pathlib import Path

from cockpit.loop.external_agent_interface import CHECKOUT, WORKTREE
from cockpit.loop.wave_context import Engine
from cockpit.store.sessions import sessions
from cockpit.tasks.worktree import branch_prefix, ensure_chain_worktree


async def choose_folder(engine: Engine, agent: str, where: str) -> Path | None:
    """Return a new worktree for the agent, or None for the checkout.

    ``where`` is ``worktree``, ``checkout``, or '' for the rule: the checkout is for one agent at a time,
    the second gets a worktree, unless the project is not a repository. Raises ``WorktreeError``.
    """
    place = engine.place
    if where != WORKTREE:
        root = str(place.root)
        is_taken = await engine.store.read(
            lambda connection: sessions.works_agent_in(connection, root, engine.store.clock.now())
        )
        if where == CHECKOUT or not is_taken or not place.git:
            return None
    name = engine.store.ids.new("w").removeprefix("w-")
    branch = f"{await branch_prefix(place)}{agent}-{name}"
    worktree = await ensure_chain_worktree(engine.store, place, branch, chain_id="")
    return Path(worktree.path)
