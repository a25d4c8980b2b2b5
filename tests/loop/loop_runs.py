"""Sessions of a scripted model that run beside a test, and what waits for the user meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from cockpit.loop.runtime import Runtime
from cockpit.store.journal import journal
from cockpit.store.journal.details.reentry import ActionKept
from cockpit.store.sessions import proposals
from cockpit.store.sessions.proposals import Proposal

PATIENCE_S = 60
T = TypeVar("T")


@asynccontextmanager
async def running(
    runtime: Runtime, model: str, words: str = "fix add", **fields: Any
) -> AsyncIterator[tuple[str, asyncio.Task[Any]]]:
    """Run a session beside the test, and interrupt it if it still runs then."""
    session_id = await runtime.start(words, model=model, **fields)
    work = asyncio.create_task(runtime.run(session_id))
    try:
        yield session_id, work
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)


async def run_to_end(
    runtime: Runtime, model: str, words: str = "fix add", policy: str = "all", **fields: Any
) -> Any:
    """Run a session without a user; returns it as it ends."""
    session_id = await runtime.start(words, model=model, policy=policy, interactive=False, **fields)
    return await asyncio.wait_for(runtime.run(session_id), PATIENCE_S)


async def wait_until(runtime: Runtime, look: Callable[[], T | None]) -> T:
    """Wait for a state of the store."""
    return await asyncio.wait_for(runtime.engine.change_waiter.wait_for(look, 0.02), PATIENCE_S)


async def pending(runtime: Runtime, kind: str = "") -> Proposal:
    """Wait for a proposal that waits."""

    def look() -> Proposal | None:
        waiting = runtime.store.read_now(proposals.select_pending)
        return next((each for each in waiting if kind in ("", each.kind)), None)

    return await wait_until(runtime, look)


async def read_details(runtime: Runtime, session_id: str, kind: type[T]) -> list[T]:
    """Return the details of that kind that the journal has of a session."""
    rows = await runtime.store.read(lambda c: journal.rows(c, session_id=session_id))
    return [row.detail for row in rows if isinstance(row.detail, kind)]


async def read_kept(runtime: Runtime, session_id: str, status: str) -> list[ActionKept]:
    """Return what the journal has of a session's kept actions with a status."""
    kept = await read_details(runtime, session_id, ActionKept)
    return [each for each in kept if each.status == status]
