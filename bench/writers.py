"""32 processes that write to one store at once: how long the unluckiest of them waits."""

from __future__ import annotations

import json
import os
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from statistics import median

from journal_latency import _session
from measure import Row, at, row

from cockpit.store.db import write_queue
from cockpit.store.db.database import Store
from cockpit.store.journal import verify_chain
from cockpit.store.journal.event_types import Action

WRITERS = 32
SECONDS = 4.0


def rows() -> list[Row]:
    """The table of this bench."""
    fair = _measure()
    opened, write_queue._open = write_queue._open, lambda path: -1
    try:
        unfair = _measure()
    finally:
        write_queue._open = opened
    return [
        row(f"{WRITERS} writers: p95 of the worst", _worst(fair) * 1000, "ms", most=200),
        row("median of all writes", median(_flat(fair)) * 1000, "ms"),
        row("longest write", max(_flat(fair)) * 1000, "ms"),
        row("writes of the slowest / of the fastest", _evenness(fair), "×", least=0.5),
        row("rate of writes", len(_flat(fair)) / SECONDS, "/s"),
        row("p95 of the worst by SQLite's lock alone", _worst(unfair) * 1000, "ms"),
        row("rate of writes by SQLite's lock alone", len(_flat(unfair)) / SECONDS, "/s"),
    ]


def _flat(took: list[list[float]]) -> list[float]:
    return [seconds for each in took for seconds in each]


def _worst(took: list[list[float]]) -> float:
    """The largest of the writers' 95th percentiles; of a writer with few writes, its longest."""
    return max(at(0.95, each) if len(each) >= 20 else max(each) for each in took)


def _evenness(took: list[list[float]]) -> float:
    return min(map(len, took)) / max(map(len, took))


def _measure() -> list[list[float]]:
    """The seconds that each write took, by writer."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        with Store.open(place / "store.db") as store:
            session_id = store.write_now(lambda tx: _session(tx, place))
        start = time.monotonic() + 1.5
        writers = [
            _fork(lambda n=number: _write(place, n, session_id, start)) for number in range(WRITERS)
        ]
        for writer in writers:
            if os.waitpid(writer, 0)[1] != 0:
                raise RuntimeError("a writer failed")
        with Store.open(place / "store.db") as store:
            if not store.read_now(verify_chain.verify).ok:
                raise RuntimeError("the journal does not verify")
        return [json.loads((place / f"{n}.json").read_text()) for n in range(WRITERS)]


def _write(place: Path, number: int, session_id: str, start: float) -> None:
    took: list[float] = []
    with Store.open(place / "store.db") as store:
        time.sleep(max(0.0, start - time.monotonic()))
        until = time.monotonic() + SECONDS
        while (began := time.monotonic()) < until:
            store.write_now(lambda tx: tx.append_row(Action.SESSION_RUNNING, session_id=session_id))
            took.append(time.monotonic() - began)
    (place / f"{number}.json").write_text(json.dumps(took))


def _fork(work: Callable[[], None]) -> int:
    child = os.fork()
    if child:
        return child
    try:
        work()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)
