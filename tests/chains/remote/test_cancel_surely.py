"""Ending tasks, also those that miss a cancellation."""

from __future__ import annotations

import asyncio

from cockpit.chains.remote.cancel_surely import end_coroutines


async def test_a_task_that_misses_a_cancellation_ends_all_the_same():
    missed: list[bool] = []

    async def deaf() -> None:
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if missed:
                    raise
                missed.append(True)

    async def over() -> int:
        return 1

    tasks = [asyncio.create_task(deaf()), asyncio.create_task(over())]
    await tasks[1]
    await end_coroutines(tasks)
    assert missed == [True] and tasks[0].cancelled() and tasks[1].result() == 1
