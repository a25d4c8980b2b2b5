"""A chain's world for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from chains.batch_loop.coordinator_world import ChainWorld, Hurried
from tasks.taskrun_world import QUICK, World

from cockpit.store.db.database import Store


@pytest.fixture
def chained(tmp_path: Path) -> Iterator[ChainWorld]:
    """A project whose tests pass, with an open store."""
    made = ChainWorld(World.made(tmp_path))
    made.world.work = QUICK
    made.green()
    yield made
    made.store.close()


@pytest.fixture
def hurried(tmp_path: Path) -> Iterator[ChainWorld]:
    """The same, with a clock whose waiting is a hundred times as fast."""
    world = World.made(tmp_path)
    world.work = QUICK
    world.store.close()
    world.store = Store.open(world.place.database, Hurried())
    made = ChainWorld(world)
    made.green()
    yield made
    made.store.close()
