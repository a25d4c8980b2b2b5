"""One project and one server for a module's tests."""

from __future__ import annotations

from collections.abc import Iterator

import httpx2
import pytest
from api_world import PATIENCE_S, Project, judged_wave, project, served


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    with project(tmp_path_factory.mktemp("served")) as made:
        yield made


@pytest.fixture(scope="module")
def waves(at: Project) -> tuple[str, str]:
    """The ids of a judged wave and of one that was not judged."""
    return judged_wave(at.store)


@pytest.fixture(scope="module")
def address(at: Project, waves: tuple[str, str]) -> Iterator[str]:
    with served(at) as found:
        yield found


@pytest.fixture
def http(address: str) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=address, timeout=PATIENCE_S) as client:
        yield client
