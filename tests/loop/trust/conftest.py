"""A world for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from loop.trust.trust_world import TrustWorld, open_trust


@pytest.fixture
def trust(tmp_path: Path) -> Iterator[TrustWorld]:
    root = tmp_path / "project"
    (root / "tests").mkdir(parents=True)
    world = open_trust(tmp_path, root)
    with world.store:
        yield world
