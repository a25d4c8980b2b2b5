"""A store on disk with a session in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from learn_world import World

from cockpit.core.clock import CountingIds, FixedClock
from cockpit.store.db.database import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "cockpit.db", FixedClock(step_s=0.001), CountingIds()) as opened:
        yield opened


@pytest.fixture
def world(store: Store) -> World:
    return World(store)


@pytest.fixture
def small(store: Store) -> Callable[[int], World]:
    """A session with a small token budget."""
    return lambda budget: World(store, budget)
