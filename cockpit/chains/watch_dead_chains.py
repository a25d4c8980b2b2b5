"""Closing dead chains while a screen or a server runs: it may be the only cockpit for days.

Commands do it when they open the store. See ``docs/reference/chains.md``, when a worker ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from cockpit.core.errors import CockpitError
from cockpit.core.text import end_sentence
from cockpit.store.chains import chains
from cockpit.store.db.database import Store

LOOK_S = 5.0
"""Seconds between two looks at chains that run."""


def describe_end(chain: chains.Chain) -> str:
    """Say that a dead chain was closed, and what resumes it."""
    ended = end_sentence(f"{chain.chain_id} has ended: {chain.reason}")
    return f"{ended} `cockpit chain resume` resumes it."


def close_chains_seen_dead(store: Store) -> list[chains.Chain]:
    """Close the chains whose processes all died, and return them; none where processes may be hidden."""
    if not store.read_now(chains.has_open):
        return []
    from cockpit.access.user_presence import find_agent
    from cockpit.chains.close_dead_chains import close_dead_chains, find_dead_chains
    from cockpit.core.processes import sees_all_processes

    # What an agent's sandbox does not show of the machine's processes is not dead.
    if not store.read_now(find_dead_chains):
        return []
    if find_agent(counts_cockpit=False) and not sees_all_processes():
        return []
    return store.write_now(close_dead_chains)


async def look_for_dead_chains(store: Store) -> list[chains.Chain]:
    """Close dead chains beside the event loop, and return them."""
    try:
        if not await store.read(chains.has_open):
            return []
        return await asyncio.to_thread(close_chains_seen_dead, store)
    except CockpitError:
        return []  # the disk is full or busy; the next look closes them


async def _look_often(store: Store) -> None:
    while True:
        await look_for_dead_chains(store)
        await store.clock.sleep(LOOK_S)


@asynccontextmanager
async def watching_dead_chains(store: Store) -> AsyncIterator[None]:
    """Watch them as long as the context lasts."""
    watch = asyncio.create_task(_look_often(store), name="dead chains")
    try:
        yield
    finally:
        watch.cancel()
        await asyncio.gather(watch, return_exceptions=True)
