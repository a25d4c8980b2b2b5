"""A small real project, scripted agents, and runtimes on both."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
import sandbox_here
from copied_repository import copy_repository
from loop_calc import make_calc
from scenario import ask, call, finish, turn
from state_for_tests import put_store

from cockpit.core.project_paths import locate_project
from cockpit.loop.runtime import Runtime, open_runtime
from cockpit.loop.runtime_settings import Limits, RuntimeSettings

collect_ignore = [] if sandbox_here.READS else ["test_commands_that_read.py"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A Git repository with a function that subtracts, and the test that says so."""
    return copy_repository(make_calc, tmp_path / "calc")


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str], str]:
    """Write a scenario; gives the model's name."""

    def write(text: str) -> str:
        path = tmp_path / "scenario.toml"
        path.write_text(text)
        return f"script:{path}"

    return write


@pytest.fixture
def opened(project: Path, tmp_path: Path) -> Callable[..., AbstractAsyncContextManager[Runtime]]:
    """Open a runtime on the project, with the given settings."""

    @asynccontextmanager
    async def opener(limits: Limits | None = None, **fields: object) -> AsyncIterator[Runtime]:
        settings = RuntimeSettings(
            user_dir=tmp_path / "user",
            limits=limits or Limits(),
            **fields,  # type: ignore[arg-type]
        )
        place = locate_project(project)
        place.prepare()
        put_store(place.database)
        async with open_runtime(place, settings) as runtime:
            yield runtime

    return opener


@pytest.fixture
async def runtime(
    opened: Callable[..., AbstractAsyncContextManager[Runtime]],
) -> AsyncIterator[Runtime]:
    """A runtime on the project, with the usual settings."""
    async with opened() as opened_runtime:
        yield opened_runtime


BOTH = ("file:calc.py", "file:test_calc.py")
COMMIT = call("git_commit", message="Add adds", paths=["calc.py"])
FIX = (
    ask(
        *BOTH,
        when='not_called = ["request_context"]',
        text="I need the file and its test before I change anything.",
    )
    + ask(
        *BOTH,
        when='not_called = ["git_commit"], contains = ["The deadline passed without a decision"]',
        question="what does add do, again?",
    )
    + turn(
        "edit_file",
        'facts = ["file:file:calc.py"], not_called = ["git_commit"]',
        "The sign is wrong. I change it, run the tests and commit.",
        path="calc.py",
        old="a - b",
        new="a + b",
    )
    + call("run", argv=["test", "-d", "."], reason="see that it is there")
    + COMMIT
    + turn(
        "run",
        'called = ["git_commit"], contains = ["It did not run|may have run"]',
        argv=["test", "-d", "."],
        reason="see that it is there",
    )
    + COMMIT
    + finish('contains = ["git_commit [^\\\\n]*\\\\n→ (?!It did not run)"]', summary="add adds")
)


@pytest.fixture
def fix(script: Callable[[str], str]) -> str:
    """An agent that asks for two files, edits, tests, commits and finishes."""
    return script(FIX)
