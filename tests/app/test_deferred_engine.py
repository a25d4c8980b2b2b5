"""The engine that opens after the first frame."""

from __future__ import annotations

import asyncio

import pytest

from cockpit.app.deferred_engine import DeferredEngine
from cockpit.core.errors import CockpitError
from cockpit.loop.runtime import Runtime


async def test_what_is_asked_too_early_waits_for_the_engine(still: Runtime) -> None:
    late = DeferredEngine(still.store, still.place)
    early = asyncio.create_task(late.engine.complete("/", "/re"))
    await asyncio.sleep(0)
    assert not early.done()

    async def opened() -> Runtime:
        return still

    assert await late.open(opened()) is still
    assert await early == await still.complete("/", "/re") != []


async def test_an_engine_that_does_not_open_is_told_to_all_who_ask(still: Runtime) -> None:
    late = DeferredEngine(still.store, still.place)
    early = asyncio.create_task(late.engine.complete("/", ""))

    async def opened() -> Runtime:
        raise CockpitError("A task type of this repository cannot be read.")

    with pytest.raises(CockpitError, match="task type"):
        await late.open(opened())
    with pytest.raises(CockpitError, match="task type"):
        await early


async def test_one_cancelled_request_leaves_the_others_waiting(still: Runtime) -> None:
    late = DeferredEngine(still.store, still.place)
    first, second = (asyncio.create_task(late.engine.complete("/", "/re")) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()

    async def opened() -> Runtime:
        return still

    await late.open(opened())
    assert await second != []
