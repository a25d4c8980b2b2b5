from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from act_world import environment, install_gh, make_project, plant_wave
from sandbox_here import CONFINES
from state_for_tests import put_store

from cockpit.act.dispatch_actions import Dispatcher
from cockpit.act.workspace import Workspace, open_workspace
from cockpit.core.clock import CountingIds, FixedClock
from cockpit.store.db.database import Store

# That bubblewrap itself fails where this is left out: adversarial/sandbox/test_sandbox_absent.py.
collect_ignore = [] if CONFINES else ["test_act_confined.py"]


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
async def ground(project: Path) -> Workspace:
    return await open_workspace(project, repo="acme/api")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    (tmp_path / "state").mkdir()
    with Store.open(
        put_store(tmp_path / "state" / "cockpit.db"), FixedClock(), CountingIds()
    ) as opened:
        yield opened


@pytest.fixture
def ids(store: Store, project: Path) -> tuple[str, str]:
    return plant_wave(store, project)


@pytest.fixture
def dispatcher(store: Store, ground: Workspace) -> Dispatcher:
    return Dispatcher(store, ground)


@pytest.fixture
async def confined(project: Path) -> Workspace:
    # The interpreter of these tests is on the PATH, as a project's own is: so it is seen inside.
    given = environment()
    path = f"{Path(sys.executable).parent}:{given.get('PATH', '')}"
    ground = await open_workspace(project, environment={**given, "PATH": path})
    assert ground.sandbox.works
    return ground


@pytest.fixture
async def plain(project: Path, tmp_path: Path) -> Workspace:
    """Everything that these tests need is on the PATH, and no bubblewrap."""
    (tmp_path / "without").mkdir()
    for name in ("git", "prlimit", "sh"):
        if (found := shutil.which(name)) is not None:
            (tmp_path / "without" / name).symlink_to(found)
    path = f"{Path(sys.executable).parent}:{tmp_path / 'without'}"
    return await open_workspace(project, environment={**environment(), "PATH": path})
