"""What is measured of chains, for any time, and compared."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from chains.measures.chain_days import three_days

from cockpit.chains.report.measure_rows import measure_rows
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
    assert found.context == (1.1, 0.4, 0.6, 0.7, 0.9)
    assert found.context_mean == pytest.approx(0.74)
    assert max(found.dropped) == 0.25
    assert found.batches == {"completed": 6, "interrupted": 1, "failed": 1}
    assert found.batch_completion == 0.75
    assert found.tasks == (3, 0, 2, 7, 8)
    assert (found.tasks_done, found.tasks_mean) == (20, 4.0)
    assert found.chains == (3, 2)
    assert found.reviews == {"passed": 4, "failed": 3}
    assert found.review_failure == pytest.approx(3 / 7)
    assert found.review_days == (2 / 3, 0.0, 0.5)
    assert (found.interrupted, found.interruption, found.crashed) == (2, 0.4, 1)
    assert found.restarts == 1


def test_rows_say_what_they_are_made_of(store: Store) -> None:
    rows = {row.name: row for row in measure_rows(look(store))}
    assert rows["Workers interrupted mid-task"].detail == "2 of 5; 1 died"
    assert rows["Cost per worker"].detail == "$0.50 in all, $0.03 per task that is done"
    met = {name: row.is_met for name, row in rows.items() if row.aim}
    assert met == {
        "Token limit used per worker": True,
        "Batches completed": False,
        "Tasks per worker": False,
        "Workers interrupted mid-task": False,
        "Restarts by hand": False,
    }
