"""What is measured of chains, for any time, and compared."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from chains.measures.chain_days import three_days

from cockpit.chains.report.measures import Measures, measure_chains
from cockpit.core.clock import CountingIds, FixedClock
from cockpit.store.db.database import Store

SECOND = "2026-01-02"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    clock = FixedClock()
    with Store.open(tmp_path / "cockpit.db", clock, CountingIds()) as opened:
        three_days(opened, clock)
        yield opened


def look(store: Store, since: str = "", before: str = "9999") -> Measures:
    return store.read_now(lambda connection: measure_chains(connection, since, before))


def test_all_of_it(store: Store) -> None:
    found = look(store)
    assert found.workers == 5
    rows = {row.name: row for row in found.rows}
    context = rows["Token limit used per worker"]
    assert (context.series, context.value) == ([1.1, 0.4, 0.6, 0.7, 0.9], pytest.approx(0.74))
    assert rows["Utility left out of a packet"].value == 0.25
    batches = rows["Batches completed"]
    assert (batches.value, batches.detail) == (0.75, "6 of 8")
    tasks = rows["Tasks per worker"]
    assert (tasks.series, tasks.value) == ([3, 0, 2, 7, 8], 4.0)
    assert tasks.detail.startswith("20 done")
    assert rows["Workers per chain"].series == [3, 2]
    reviews = rows["Reviews failed"]
    assert (reviews.value, reviews.detail) == (pytest.approx(3 / 7), "3 of 7")
    assert reviews.series == [2 / 3, 0.0, 0.5]
    assert rows["Workers interrupted mid-task"].value == 0.4
    assert rows["Workers interrupted mid-task"].detail == "2 of 5; 1 died"
    assert rows["Restarts by hand"].value == 1
    assert rows["Cost per worker"].detail == "$0.50 in all, $0.03 per task that is done"
    met = {name: row.is_met for name, row in rows.items() if row.aim}
    assert met == {
        "Token limit used per worker": True,
        "Batches completed": False,
        "Tasks per worker": False,
        "Workers interrupted mid-task": False,
        "Restarts by hand": False,
    }
