"""How the benches measure: rows, medians, and runs that take turns so that the machine's mood is shared."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from statistics import median, quantiles
from typing import Any

Row = dict[str, Any]

if "COCKPIT_BENCH_STATE" not in os.environ:
    # No bench may write into the state folder of the user who runs it; its processes inherit this one.
    os.environ["COCKPIT_STATE_DIR"] = os.path.realpath(tempfile.mkdtemp(prefix="cockpit-bench-"))
    os.environ["COCKPIT_BENCH_STATE"] = "1"
    atexit.register(shutil.rmtree, os.environ["COCKPIT_STATE_DIR"], ignore_errors=True)


def row(
    name: str, value: float, unit: str, *, most: float | None = None, least: float | None = None
) -> Row:
    """One line of the table; without ``most`` or ``least`` it is there to be read, not to be met."""
    ok = (most is None or value <= most) and (least is None or value >= least)
    bar = most if most is not None else least
    return {"name": name, "value": round(value, 4), "unit": unit, "bar": bar, "ok": ok}


def in_turns(
    runs: int, *works: Callable[[], object], clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Median seconds by ``clock`` of each of ``works``, which take turns ``runs`` times."""
    took: list[list[float]] = [[] for _ in works]
    for work in works:
        work()
    for _ in range(runs):
        for place, work in enumerate(works):
            started = clock()
            work()
            took[place].append(clock() - started)
    return [median(times) for times in took]


def at(share: float, values: Sequence[float]) -> float:
    """The value below which ``share`` (of 1) of the values are."""
    return quantiles(values, n=100, method="inclusive")[round(share * 100) - 1]
