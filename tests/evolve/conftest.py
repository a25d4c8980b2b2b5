"""A small project, and an engine on it in a sandbox."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from sandbox_here import CONFINES
from state_for_tests import put_store

from cockpit.config.load_settings import load_settings
from cockpit.core.project_paths import locate_project
from cockpit.loop.runtime import Runtime, open_runtime

collect_ignore = (
    []
    if CONFINES
    else [
        "test_evolve.py", "test_growth_in_chain.py", "test_hostile_growth.py", "test_kill_growth.py",
        "test_propose_tool.py",
    ]
)  # fmt: skip


@pytest.fixture
def opened(tmp_path: Path) -> Callable[[str], AbstractAsyncContextManager[Runtime]]:
    """Open a runtime with a scenario's text as its model."""
    project = tmp_path / "project"
    project.mkdir()

    @asynccontextmanager
    async def opener(scenario: str) -> AsyncIterator[Runtime]:
        path = tmp_path / "scenario.toml"
        path.write_text(scenario)
        environment = {"COCKPIT_CONFIG_DIR": str(tmp_path / "user")}
        settings = load_settings(
            None, env=environment, flags={"[model] name": f"script:{path}"}
        ).runtime
        place = locate_project(project)
        place.prepare()
        put_store(place.database)
        async with open_runtime(place, settings) as runtime:
            yield runtime

    return opener
