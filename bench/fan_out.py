"""What the fan-out itself costs a job, and how near to ideal it keeps 128 observers busy."""

from __future__ import annotations

import asyncio
import time
from statistics import median

from measure import Row, row

from cockpit.observe.fanout import Job, fan_out

JOBS = 10_000
SOURCES = ("file", "search", "symbol", "diff")
QUOTAS = {"search": 64, "symbol": 32}
SLOW_JOBS = 2_560
SLOW_S = 0.02
AT_ONCE = 128


def rows() -> list[Row]:
    """The table of this bench."""
    asyncio.run(_cpu())
    cost = median(asyncio.run(_cpu()) for _ in range(5))
    busy = median(asyncio.run(_busy()) for _ in range(3))
    return [
        row("fan-out of 10,000 no-op jobs, a job", cost, "µs CPU", most=15),
        row("fan-out of 20 ms jobs, share of ideal", busy, "", least=0.92),
    ]


async def _cpu() -> float:
    async def nothing() -> None:
        return None

    jobs = [Job(SOURCES[n % len(SOURCES)], str(n), nothing) for n in range(JOBS)]
    started = time.process_time()
    await fan_out(jobs, limit=AT_ONCE, per_source=QUOTAS, timeout_s=10)
    return 1e6 * (time.process_time() - started) / JOBS


async def _busy() -> float:
    async def wait() -> None:
        await asyncio.sleep(SLOW_S)

    jobs = [Job("file", str(n), wait) for n in range(SLOW_JOBS)]
    started = time.perf_counter()
    await fan_out(jobs, limit=AT_ONCE, timeout_s=10)
    return (SLOW_JOBS / AT_ONCE * SLOW_S) / (time.perf_counter() - started)
