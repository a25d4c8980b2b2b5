"""A chain's world for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from coordinator.coordinator_world import ChainWorld
from taskrun.taskrun_world import World


@pytest.fixture
def chained(tmp_path: Path) -> Iterator[ChainWorld]:
    """A project whose tests pass, with an open store."""
    made = ChainWorld(World.made(tmp_path))
    made.green()
    yield made
    made.store.close()
