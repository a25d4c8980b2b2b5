"""Ending what no process looks after any more: dead chains, and proposals past their deadline.

Commands do it when they open the store, a screen or a server while it runs: it may be the only cockpit for
days. See ``docs/reference/chains.md``, when a worker ends, and ``docs/reference/loop.md``, decisions.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from cockpit.core.errors import CockpitError
from cockpit.core.text import end_sentence
from cockpit.store.chains import chains
from cockpit.store.db.database import Store
from cockpit.store.sessions import proposals

LOOK_S = 5.0
"""Seconds between two looks."""


def describe_end(chain: chains.Chain) -> str:
    """Say that a dead chain was closed, and what resumes it."""
    ended = end_sentence(f"{chain.chain_id} has ended: {chain.reason}")
    return f"{ended} `cockpit work --continue` resumes it."


def end_unattended(store: Store) -> list[chains.Chain]:
    """Expire what is due, close the chains whose processes all died, and return these.

    No chain is closed where processes may be hidden.
    """
    if store.read_now(lambda connection: proposals.has_due(connection, store.clock)):
        store.write_now(proposals.expire_due)
    if not store.read_now(chains.has_open):
        return []
    from cockpit.access.user_presence import find_agent
    from cockpit.chains.supervisor import close_dead_chains, find_dead_chains
    from cockpit.core.processes import sees_all_processes

    # What an agent's sandbox does not show of the machine's processes is not dead.
    if not store.read_now(find_dead_chains):
        return []
    if find_agent(counts_cockpit=False) and not sees_all_processes():
        return []
    return store.write_now(close_dead_chains)


async def look_for_unattended(store: Store) -> list[chains.Chain]:
    """Do the same beside the event loop."""
    try:
        return await asyncio.to_thread(end_unattended, store)
    except CockpitError:
        return []  # the disk is full or busy; the next look ends them


async def _look_often(store: Store) -> None:
    while True:
        await look_for_unattended(store)
        await store.clock.sleep(LOOK_S)


@asynccontextmanager
async def watching_unattended(store: Store) -> AsyncIterator[None]:
    """Watch them as long as the context lasts."""
    watch = asyncio.create_task(_look_often(store), name="dead chains")
    try:
        yield
    finally:
        watch.cancel()
        await asyncio.gather(watch, return_exceptions=True)
