"""Running the project's tests in a task's worktree, inside the sandbox.

The command is the configured one, else the one that :mod:`cockpit.observe.frame.test_command` finds. See
``docs/reference/backlog.md``.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from cockpit.act.adapters.run_command import MACHINE, CommandAdapter
from cockpit.act.command_line import split_command
from cockpit.act.workspace import Workspace
from cockpit.core.errors import MachineFault
from cockpit.core.failure_lines import clip_start
from cockpit.learn.test_output import list_failing, read_tests
from cockpit.observe.frame.test_command import detect_test_command, find_test_environment

TIMEOUT_S = 1_200
"""The longest that a task's tests may run, in seconds."""
MOST_OUTPUT = 12_000
"""Characters of a run's output that are kept, from its end, beside lines that say what failed."""

_NOTHING_COLLECTED = 5
_NOT_FOUND = 127
_NONE_RAN = "Ran 0 tests in "


class TestRun(Struct, frozen=True):
    """One run. ``status``: ``passed``, ``failed``, ``none`` (there are no tests, or no command that
    runs them) or ``refused`` (they may not be run here). ``results`` are those of work in progress."""

    __test__ = False

    status: str
    summary: str
    argv: tuple[str, ...] = ()
    output: str = ""
    results: Mapping[str, Any] | None = None
    failing: tuple[str, ...] = ()
    """The names of the tests that failed, where the output says them."""


async def run_tests(ground: Workspace, home: Path, command: str | None, policy: str) -> TestRun:
    """Run the tests of the worktree of ``ground``. ``home`` is the main checkout, whose
    virtual environment is used; ``command`` is the configured one.

    Without a sandbox they run only under the policy ``all``: they are the repository's own code, and
    a user has to allow it. Raises ``CommandRefused`` for an invalid command, ``ProgramMissing``, and
    ``MachineFault``.
    """
    environment = find_test_environment(ground.root, home, ground.environment)
    ground = replace(ground, environment=environment)
    argv = (
        split_command(command) if command else detect_test_command(ground.root, ground.environment)
    )
    if argv is None:
        return TestRun(
            "none", "No tests were run: cockpit found no test command. Set [work] test_command."
        )
    if not ground.sandbox.works and policy != "all":
        return TestRun(
            "refused",
            f"The tests were not run: there is no sandbox here ({ground.sandbox.missing}), and without "
            "one the repository's code would run with all of your rights. Install bubblewrap, or "
            "allow it with --approve all.",
            argv,
        )
    payload = {"argv": argv, "timeout_s": TIMEOUT_S, "sandboxed": ground.sandbox.works}
    ended = await CommandAdapter().perform(payload, "", ground)
    detail = ended.detail
    if fault := detail.get(MACHINE):
        raise MachineFault(f"The tests could not run: {fault}. Make room, then resume.")
    output = "\n".join(str(detail[name]) for name in ("stdout", "stderr") if detail.get(name))
    code = detail.get("exit_code")
    read = read_tests(argv, output, code if isinstance(code, int) else None)
    results = None if read is None else read.wip()
    status = "passed" if ended.status == "success" else "failed"
    if code == _NOT_FOUND and not _is_there(argv[0], ground):
        return TestRun(
            "refused",
            f"The tests were not run: there is no program {argv[0]!r} here. Install it, or set "
            "[work] test_command.",
            argv,
        )
    if code == _NOTHING_COLLECTED and read is not None and read.runner == "pytest":
        return TestRun("none", "No tests were run: pytest found none.", argv, output, results)
    if status == "passed" and read is not None and read.runner == "unittest" and not read.counted:
        if _NONE_RAN in output:
            return TestRun("none", "No tests were run: unittest found none.", argv, output, results)
        status = "failed"  # whatever ended it with 0, it was not its tests
    # Where the program lies is this machine's business; the summary is read in handoffs and commits.
    summary = ended.summary.replace(argv[0], Path(argv[0]).name, 1)
    failing = list_failing(output) if status == "failed" else ()
    return TestRun(status, summary, argv, clip_start(output, MOST_OUTPUT), results, failing)


def _is_there(program: str, ground: Workspace) -> bool:
    program_path = shutil.which(program, path=ground.environment.get("PATH", ""))
    return program_path is not None or (ground.root / program).exists()
