"""The lease of a session that an agent from outside takes: one process sees to it at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from cockpit.core.errors import Stale
from cockpit.store.db.database import Store
from cockpit.store.sessions import sessions

HEARTBEAT_S = 15.0


@asynccontextmanager
async def hold_session(store: Store, session_id: str) -> AsyncIterator[asyncio.Event]:
    """Hold the session's lease; the event is set when another process has taken it over.

    Raises ``Stale`` when another live process has it.
    """
    token = await store.write(lambda tx: sessions.acquire(tx, session_id))
    lost = asyncio.Event()
    beat = asyncio.create_task(_heartbeat(store, session_id, token, lost))
    try:
        yield lost
    finally:
        beat.cancel()
        await asyncio.gather(beat, return_exceptions=True)
        await asyncio.shield(store.write(lambda tx: sessions.release(tx, session_id, token)))


async def _heartbeat(store: Store, session_id: str, token: str, lost: asyncio.Event) -> None:
    while True:
        await asyncio.sleep(HEARTBEAT_S)
        try:
            await store.write(lambda tx: sessions.renew(tx, session_id, token))
        except Stale:
            lost.set()
            return
