"""A world for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tasks.taskrun_world import QUICK, World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A project with an open store."""
    made = World.made(tmp_path)
    made.work = QUICK
    yield made
    made.store.close()
