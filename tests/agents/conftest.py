"""A project for each test, with a task that an agent has in hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from agents.runner_world import Runs
from tasks.taskrun_world import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A project with an open store."""
    made = World.made(tmp_path)
    yield made
    made.store.close()


@pytest.fixture
def runs(world: World) -> Runs:
    """The same project, with T-1."""
    return Runs(world.folder, world.place, world.store, world.task())
