from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from act_world import install_gh, make_project, plant_wave

from cockpit.act.ground import ActGround, stand_on
from cockpit.act.outbox import Dispatcher
from cockpit.store.clock import CountingIds, FixedClock
from cockpit.store.database import Store


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)
    return make_project(tmp_path / "project")


@pytest.fixture
def github(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    world = install_gh(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{world.parent}{os.pathsep}{os.environ['PATH']}")
    return world


@pytest.fixture
async def ground(project: Path) -> ActGround:
    return await stand_on(project, repo="acme/api")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    (tmp_path / "state").mkdir()
    with Store.open(tmp_path / "state" / "cockpit.db", FixedClock(), CountingIds()) as opened:
        yield opened


@pytest.fixture
def ids(store: Store, project: Path) -> tuple[str, str]:
    return plant_wave(store, project)


@pytest.fixture
def dispatcher(store: Store, ground: ActGround) -> Dispatcher:
    return Dispatcher(store, ground)
