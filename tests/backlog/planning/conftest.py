"""A project and ``cockpit`` run in it; a store that one looks into."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from plan_world import Project

from cockpit.core.clock import CountingIds, FixedClock
from cockpit.store.db.database import Store


@pytest.fixture
def project(tmp_path: Path) -> Project:
    root = tmp_path / "api"
    root.mkdir()
    return Project(root)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "cockpit.db", FixedClock(), CountingIds()) as opened:
        yield opened
