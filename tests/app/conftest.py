"""A project, runtimes on it, and snapshots that stay the same from run to run."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from app_git import git
from app_scenes import Scene
from app_world import SNAPSHOTS, calm, text_of, until
from copied_repository import copy_repository
from still_runtime import Still
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from cockpit.act.workspace import open_workspace
from cockpit.agents.acp_client.running_agents import RunningAgents
from cockpit.core.clock import Clock, CountingIds, FixedClock
from cockpit.core.project_paths import locate_project
from cockpit.loop.change_waiter import ChangeWaiter
from cockpit.loop.intake.task_type_files import TaskTypeFiles
from cockpit.loop.runtime import Runtime, open_runtime
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.loop.wave_context import Engine
from cockpit.store.db.database import Store

_TERMINAL = re.compile(r"terminal-\d+-")


class Pictures(SingleFileSnapshotExtension):
    """SVGs in the top-level folder, without the random ids that Textual gives to style classes."""

    file_extension = "svg"
    _write_mode = WriteMode.TEXT

    @classmethod
    def dirname(cls, *, test_location):
        return str(SNAPSHOTS / test_location.basename)

    def serialize(self, data, **options):
        return _TERMINAL.sub("terminal-", super().serialize(data, **options))


def _make_api(root: Path) -> None:
    git(root, "init", "-q", "-b", "main", "--template=")  # whose files would be copied each time
    (root / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    (root / "notes.md").write_text("# Notes\n")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "Begin")


@pytest.fixture
def picture(snapshot):
    """Compare a running app with its pictures: one at each size, taken once ``ready`` has waited."""

    async def compare(pilot, name, sizes=(), ready=calm):
        different = {}
        for size in sizes or (pilot.app.size,):
            if tuple(pilot.app.screen.size) != tuple(size):
                await pilot.resize_terminal(*size)
                await until(pilot, lambda size=size: tuple(pilot.app.screen.size) == tuple(size))
            await ready(pilot)
            of = f"{name}-{size[0]}x{size[1]}".removeprefix("-")
            if pilot.app.export_screenshot() != snapshot(name=of, extension_class=Pictures):
                different[of] = text_of(pilot.app)
        assert not different, "\n".join(f"{of} is\n{text}" for of, text in different.items())

    return compare


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A Git repository with two files, called ``api``."""
    return copy_repository(_make_api, tmp_path / "api")


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
def still(project: Path, clock: FixedClock, tmp_path: Path) -> Iterator[Runtime]:
    """A runtime on which nothing runs: rows are written by hand, decisions go to the store."""
    place = locate_project(project)
    place.prepare()
    store = Store.open(place.database, clock, CountingIds(), durable=False)
    settings = RuntimeSettings(user_dir=tmp_path / "user", external_agents=RunningAgents)
    ground = asyncio.run(open_workspace(place.root, repo="acme/api"))
    files = TaskTypeFiles(place, settings.user_dir)
    changes = ChangeWaiter(store)
    engine = Engine(store, place, settings, files.types, ground, changes, "acme/api")
    yield Still(engine, files)
    store.close()


@pytest.fixture
def scene(still: Runtime, project: Path) -> Scene:
    """A story that is told in the store of ``still``."""
    return Scene(still.store, project)


@pytest.fixture
def opened(project: Path, tmp_path: Path) -> Callable[..., AbstractAsyncContextManager[Runtime]]:
    """Open a runtime that really runs, on a clock of the test's."""

    @asynccontextmanager
    async def opener(clock: Clock, **fields: object) -> AsyncIterator[Runtime]:
        settings = RuntimeSettings(user_dir=tmp_path / "user", **fields)  # type: ignore[arg-type]
        async with open_runtime(locate_project(project), settings, clock=clock) as runtime:
            yield runtime

    return opener
