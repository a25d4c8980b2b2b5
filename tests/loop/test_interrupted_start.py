"""A run that is interrupted at its very beginning leaves no session that runs for ever."""

from __future__ import annotations

import asyncio

import pytest

from cockpit.store.sessions import sessions

FINISH = (
    '[[turn]]\n[[turn.call]]\nname = "finish"\narguments = { status = "done", summary = "s" }\n'
)


@pytest.mark.parametrize("turns", range(1, 8))
async def test_an_early_interrupt_stops_the_session(opened, script, turns):
    async with opened() as runtime:
        sid = await runtime.start("fix it", model=script(FINISH), interactive=False)
        run = asyncio.create_task(runtime.run(sid))
        for _ in range(turns):
            await asyncio.sleep(0)
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)
        session = await runtime.store.read(lambda c: sessions.load(c, sid))
        assert session.status in ("stopped", "completed")
        assert session.lease_owner is None
