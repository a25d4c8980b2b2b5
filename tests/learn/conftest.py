"""A store on disk with a session in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from learn_world import World
from store.store_world import open_store

from cockpit.core.clock import FixedClock
from cockpit.store.db.database import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path, clock=FixedClock(step_s=0.001)) as opened:
        yield opened


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store for tests that look at their own session alone."""
    with open_store(tmp_path_factory.mktemp("shared"), clock=FixedClock(step_s=0.001)) as opened:
        yield opened


@pytest.fixture
def world(shared: Store) -> World:
    return World(shared)


@pytest.fixture
def small(shared: Store) -> Callable[[int], World]:
    """A session with a small token budget."""
    return lambda budget: World(shared, budget)
