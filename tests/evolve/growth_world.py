"""Wait for a growth, stop it, and see how its rounds ended."""

from __future__ import annotations

import asyncio

from cockpit.loop.runtime import Runtime
from cockpit.store.journal import journal
from cockpit.store.journal.details.evolution import EvolutionTried
from cockpit.store.sessions import proposals
from cockpit.store.sessions.proposals import Proposal
from cockpit.store.sessions.sessions import Session


async def wait_for(runtime: Runtime, kind: str, work: asyncio.Task[Session]) -> Proposal:
    """Wait for a pending proposal whose action is of type ``kind``."""
    while not work.done():
        for proposal in await runtime.store.read(proposals.select_pending):
            if proposal.body.get("type") == kind:
                return proposal
        await asyncio.sleep(0.01)
    raise AssertionError(f"no {kind} was proposed: {work.result().result}")


async def stop(work: asyncio.Task[Session]) -> None:
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)


async def outcomes_of(runtime: Runtime, session_id: str) -> list[tuple[str, str]]:
    """Return the step and the outcome of each round."""
    rows = await runtime.store.read(lambda c: journal.rows(c, session_id=session_id))
    details = [row.detail for row in rows if isinstance(row.detail, EvolutionTried)]
    return [(detail.step, detail.outcome) for detail in details]
