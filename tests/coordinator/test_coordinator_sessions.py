"""Sessions of a chain: batches that grow, what ends them, and what the next one takes up."""

from __future__ import annotations

import asyncio

from coordinator.coordinator_world import ALL_PASS, ChainWorld

from cockpit.work.pressure import Quota


async def test_batches_grow_while_they_succeed_until_nothing_is_left(chained: ChainWorld) -> None:
    made = chained.tasks(6)
    ended = await chained.session(chained.chain())
    assert (ended.reason, ended.tasks_done, ended.batches) == ("empty", 6, 3)
    assert [(row["size"], row["next_size"]) for row in chained.batches()] == [(2, 3), (3, 4), (4, 4)]
    assert chained.statuses() == dict.fromkeys(made, "done")
    assert chained.leases() == []
    assert ended.tokens == sum(row["tokens"] for row in chained.batches()) > 0
