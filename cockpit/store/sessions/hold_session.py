"""Hold a session while this process runs it: no other process runs it meanwhile.

See ``docs/reference/kernel.md``, events.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from cockpit.core.errors import Stale
from cockpit.store.db.database import Store
from cockpit.store.sessions import sessions

HEARTBEAT_S = 15.0
"""Seconds between two renewals of the lease."""


@asynccontextmanager
async def hold_session(store: Store, session_id: str) -> AsyncIterator[asyncio.Event]:
    """Hold the session's lease; the yielded event is set when another process has taken it.

    Raises ``Stale`` when another live process holds it.
    """
    token = await store.write(lambda tx: sessions.acquire(tx, session_id))
    lost = asyncio.Event()
    heartbeat = asyncio.create_task(_renew_lease(store, session_id, token, lost))
    try:
        yield lost
    finally:
        heartbeat.cancel()
        await asyncio.gather(heartbeat, return_exceptions=True)
        await asyncio.shield(sessions.end_lease(store, session_id, token))


async def _renew_lease(store: Store, session_id: str, token: str, lost: asyncio.Event) -> None:
    while True:
        await asyncio.sleep(HEARTBEAT_S)
        try:
            await store.write(lambda tx: sessions.renew(tx, session_id, token))
        except Stale:
            lost.set()
            return
