"""Run the tests of a tool that is being written, in the sandbox and nowhere else.

See ``docs/reference/evolve.md``, rounds.
"""

from __future__ import annotations

from pathlib import Path

from cockpit.act.own_tools.run_child import run_child
from cockpit.act.own_tools.tool_files import ToolFile, ToolFolder, digest_files
from cockpit.act.workspace import Workspace
from cockpit.core.secrets import mask
from cockpit.evolve.growth import SuiteRun, read_run

TIMEOUT_S = 60.0
"""Seconds after which a run of tests is ended."""


def make_file(ground: Workspace, name: str, code: str) -> ToolFile:
    """Return the tool's file as it would be in the project, with nothing written."""
    files = {f"{name}.py": code.encode()}
    folder = Path(ground.root) / ".cockpit" / "tools"
    return ToolFile(
        ToolFolder("project", folder, Path(ground.root)), f"{name}.py", files, digest_files(files)
    )


async def run_tests(ground: Workspace, name: str, code: str, test: str) -> SuiteRun:
    """Run ``test`` over ``code`` in a fresh process, which may read the project and write nothing of it.

    Raises ``NoSandbox``; nothing ran then.
    """
    answer = await run_child(
        make_file(ground, name, code),
        {"mode": "suite", "name": name, "test": test},
        ground.sandbox,
        ground.root,
        ground.environment,
        timeout_s=TIMEOUT_S,
        writes=False,
    )
    if answer.error:
        return SuiteRun(0, error=mask(answer.error))
    run = read_run(answer.result if isinstance(answer.result, dict) else {})
    return SuiteRun(
        run.ran,
        run.skipped,
        tuple((mask(test_name), mask(trace)) for test_name, trace in run.failed),
        run.error,
    )
