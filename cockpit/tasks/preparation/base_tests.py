"""The tests of a chain's base, run once before anything is paid.

What was red before a task blocks no task, and an environment that cannot run the tests is named before an
implementer begins. See ``docs/reference/roles.md``, worktrees.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from cockpit.act.workspace import Workspace
from cockpit.core.text import pluralize
from cockpit.store.backlog.tasks import Task
from cockpit.store.chains import task_runs
from cockpit.tasks.run_tests import TestRun, run_tests
from cockpit.tasks.task_context import TaskContext

_NOT_THERE = re.compile(
    r".*(?:Cannot find (?:module|package) '[^./]|ERR_MODULE_NOT_FOUND|No module named"
    r"|: (?:command )?not found"
    r"|no required module provides|missing go\.sum entry|failed to (?:download|fetch|load source)"
    r"|Could not find .*gem|vendor/autoload\.php|Unchecked dependencies|Could not resolve host).*"
)
"""A line of output by which programs say that what the project depends on is not installed."""
_SETUPS = {
    "package-lock.json": "npm ci",
    "pnpm-lock.yaml": "pnpm install --frozen-lockfile",
    "yarn.lock": "yarn install --frozen-lockfile",
    "package.json": "npm install",
    "uv.lock": "uv sync",
    "poetry.lock": "poetry install",
    "requirements.txt": "uv pip install --target vendor -r requirements.txt",
    "Cargo.lock": "cargo fetch",
    "go.mod": "go mod vendor",
    "Gemfile.lock": "bundle install",
    "composer.lock": "composer install",
    "mix.lock": "mix deps.get",
}
"""By the file that names a project's dependencies: the command that installs them."""
_MOST_NAMED = 10
_EVERYWHERE = frozenset(("test", "tests", "the", "and", "for", "fix", "add", "src", "spec"))
"""Words that say nothing about which test belongs to a task."""


async def test_base(context: TaskContext, ground: Workspace) -> Mapping[str, Any]:
    """Run the tests of ``ground``, a worktree without a change, unless the chain has done so.

    Returns what is stored with the first step: ``status`` and ``summary`` of the run, ``failing`` (names of
    red tests), and ``missing`` (why nothing can be tested here; empty where it can). Raises as
    :func:`~cockpit.tasks.run_tests.run_tests` does.
    """
    async with context.base_lock:
        earlier = context.store.read_now(
            lambda connection: task_runs.find_base_tests(connection, context.chain_id)
        )
        if earlier is not None:
            return earlier
        run = await run_tests(
            ground, context.place.home, context.work.test_command, context.approve
        )
        return {
            "status": run.status,
            "summary": run.summary,
            "failing": list(run.failing),
            "missing": _why_untestable(run, ground.root),
        }


def _why_untestable(run: TestRun, root: Path) -> str:
    if run.status == "refused":
        return run.summary
    line = _NOT_THERE.search(run.output) if run.status == "failed" and not run.failing else None
    if line is None:
        return ""
    setup = find_setup(root)
    how = f', for example `setup = "{setup}"`' if setup else ""
    return (
        f"The tests cannot run in a worktree, also without any change: {line[0].strip()[:300]}. A worktree"
        " has none of the files that git ignores. Say how they come there in [work] of your configuration"
        f'{how}, `link = ["node_modules"]` or `copy = [".env.test"]`; then unblock the task.'
    )


def find_setup(root: Path) -> str:
    """Return the command that installs what the project's lock files name; empty without one."""
    return next((command for name, command in _SETUPS.items() if (root / name).is_file()), "")


def list_lock_files(root: Path) -> list[Path]:
    """List the files by which a project's dependencies are known."""
    return [root / name for name in _SETUPS if (root / name).is_file()]


def excuse_red_tests(run: TestRun, base: Mapping[str, Any], task: Task) -> TestRun:
    """Return the run as passed where all that is red was red before the task; its summary names it.

    A test that shares a word with the task's title or files is the task's business, and excuses nothing.
    """
    red_before = set(base.get("failing", ()))
    if run.status != "failed" or not run.failing or not set(run.failing) <= red_before:
        return run
    own = _words(" ".join((task.title, *task.files)))
    if any(own & _words(name) for name in run.failing):
        return run
    count = pluralize(len(run.failing), "test")
    words = f"{run.summary} {count} failed before the task, too: {_name(run.failing)}."
    return replace(run, status="passed", summary=words)


def _words(text: str) -> frozenset[str]:
    parts = re.findall(r"[A-Z]?[a-z0-9]+|[A-Z]+", text)
    return frozenset(part.lower() for part in parts if len(part) > 2) - _EVERYWHERE


def _name(tests: Sequence[str]) -> str:
    more = len(tests) - _MOST_NAMED
    return ", ".join(tests[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
