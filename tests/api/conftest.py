"""One project, and a server in memory, for a module's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from api_world import ADDRESS, Project, judged_wave, project
from starlette.testclient import TestClient

from cockpit.api.application import application
from cockpit.api.middleware import Gate
from cockpit.loop.runtime_settings import RuntimeSettings


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    with project(tmp_path_factory.mktemp("served")) as made:
        yield made


@pytest.fixture(scope="module")
def waves(at: Project) -> tuple[str, str]:
    """The ids of a judged wave and of one that was not judged."""
    return judged_wave(at.store)


@pytest.fixture
def http(at: Project, waves: tuple[str, str]) -> Iterator[TestClient]:
    gate = Gate(application(at.store, RuntimeSettings()), ADDRESS)
    with TestClient(gate, base_url=ADDRESS.url, client=("127.0.0.1", 2)) as client:
        yield client
