"""A weather project, a desk to change profiles at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from adapt_world import Desk, desk, weather_project

from cockpit.core.clock import CountingIds, FixedClock


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return weather_project(tmp_path / "weather")


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
def at_desk(tmp_path: Path, clock: FixedClock) -> Iterator[Callable[..., Desk]]:
    """Opens the desk with the given adaptation settings; closed at the end."""
    opened: list[Desk] = []

    def opener(**limits: object) -> Desk:
        opened.append(desk(tmp_path / "cockpit.db", clock, CountingIds(), **limits))
        return opened[-1]

    yield opener
    for one in opened:
        one.store.close()
