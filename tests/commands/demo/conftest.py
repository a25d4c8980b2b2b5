from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from state_for_tests import copy_project

from cockpit.commands.demo.sample_project import Sample, make_sample


@pytest.fixture(scope="session")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Sample]:
    """Copies of a sample that is made once."""
    made = asyncio.run(make_sample(tmp_path_factory.mktemp("made") / "sample"))

    def copy(root: Path) -> Sample:
        copy_project(made.root, root)
        return replace(made, root=root)

    return copy


@pytest.fixture
def sample(copied: Callable[[Path], Sample], tmp_path: Path) -> Sample:
    return copied(tmp_path / "sample")
