"""A world for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from permission_world import World, open_world


@pytest.fixture
def world(project: Path, tmp_path: Path) -> Iterator[World]:
    opened = open_world(project, tmp_path)
    yield opened
    opened.store.close()
