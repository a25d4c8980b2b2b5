"""What workers of one machine may use in an hour, together."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from cockpit.chains.remote.machine_quota import HourlyLimits, MachineQuota
from cockpit.core.clock import FixedClock


class Moved(FixedClock):
    """A clock that a test moves on."""

    def __init__(self) -> None:
        super().__init__()
        self.later = timedelta()

    def now(self):  # type: ignore[no-untyped-def]
        return super().now() + self.later


def quotas(path: Path, clock: Moved, **limits: float) -> tuple[MachineQuota, MachineQuota]:
    """Two workers of one machine."""
    both = HourlyLimits(**limits)  # type: ignore[arg-type]
    return MachineQuota(path, clock, both), MachineQuota(path, clock, both)


def test_tasks_of_an_hour_are_counted_over_all_workers(tmp_path: Path):
    clock = Moved()
    one, other = quotas(tmp_path / "quota", clock, tasks=2)
    assert one.take() == 0.0
    clock.later = timedelta(minutes=10)
    assert other.take() == 0.0
    clock.later = timedelta(minutes=20)
    assert one.take() == pytest.approx(40 * 60, abs=5)
    other.give_back()
    assert one.take() == 0.0, "the other one found no task to do"
    clock.later = timedelta(minutes=61)
    assert one.take() == 0.0, "the first task was more than an hour ago"
    assert one.take() > 0


@pytest.mark.parametrize(
    ("limits", "used", "is_full"),
    [
        ({"tokens": 100}, (99, 1.0), False),
        ({"tokens": 100}, (100, None), True),
        ({"cost_usd": 1.0}, (100, 0.99), False),
        ({"cost_usd": 1.0}, (100, 1.0), True),
        ({"cost_usd": 1.0}, (100, None), True),
        ({"cost_usd": 1.0}, (0, None), False),
        ({}, (10**9, 10**9), False),
    ],
)
def test_tokens_and_money_count_once_a_run_ends(tmp_path: Path, limits, used, is_full):
    clock = Moved()
    one, other = quotas(tmp_path / "quota", clock, **limits)
    assert one.take() == 0.0
    one.add(*used)
    assert bool(other.take()) is is_full
    clock.later = timedelta(minutes=61)
    assert other.take() == 0.0


def test_a_record_that_a_crash_cut_off_counts_as_far_as_it_can_be_read(tmp_path: Path):
    path = tmp_path / "quota"
    one, _ = quotas(path, Moved(), tasks=1)
    assert one.take() == 0.0
    path.write_text(path.read_text() + '{"at": "20')
    assert one.take() > 0
