"""A backlog of its own for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from work_world import Backlog, opened


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Backlog]:
    made = opened(tmp_path)
    yield made
    made.store.close()
