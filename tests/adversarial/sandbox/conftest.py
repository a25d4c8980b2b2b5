from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import sandbox_here
from copied_repository import begin_repository

from cockpit.act.workspace import Workspace, open_workspace

ATTACKS = (
    "test_sandbox_attacks.py", "test_sandbox_limits.py", "test_read_checkout.py", "test_git_view.py",
)  # fmt: skip
collect_ignore = [] if sandbox_here.CONFINES else list(ATTACKS)
collect_ignore += [] if sandbox_here.READS else ["test_reading_sandbox.py"]
# There is nothing to attack without a sandbox. ``test_sandbox_absent.py`` is collected everywhere: it shows
# that bubblewrap itself fails where these are left out, and what cockpit does and says there.


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)
    return begin_repository(tmp_path / "project", {})


@pytest.fixture
async def ground(project: Path) -> Workspace:
    return await _open(project)


@pytest.fixture
async def ground_on_disk(project: Path) -> AsyncIterator[Workspace]:
    """The project on a disk: a machine may have /tmp in memory, where nothing is written to a disk."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        yield await _open(Path(shutil.copytree(project, Path(folder) / "project", symlinks=True)))


async def _open(project: Path) -> Workspace:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return await open_workspace(project, environment={**os.environ, "PATH": path})
