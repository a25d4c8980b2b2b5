"""Running the project's tests in a task's worktree, inside the sandbox.

The command is the configured one, else the one that the project's files suggest. See
``docs/reference/backlog.md``.
"""

from __future__ import annotations

import json
import re
import shutil
import tomllib
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
from cockpit.learn.test_output import read_tests

TIMEOUT_S = 1_200
"""The longest that a task's tests may run, in seconds."""
MOST_OUTPUT = 12_000
"""Characters of a run's output that are kept, from its end, beside lines that say what failed."""

_NOTHING_COLLECTED = 5
_NOT_FOUND = 127
_NONE_RAN = "Ran 0 tests in "
_MAKE_TEST = re.compile(r"^test\s*:(?!=)", re.MULTILINE)
_NPM_DEFAULT = "no test specified"
_LARGEST = 1_000_000


class TestRun(Struct, frozen=True):
    """One run. ``status``: ``passed``, ``failed``, ``none`` (there are no tests, or no command that
    runs them) or ``refused`` (they may not be run here). ``results`` are those of work in progress."""

    __test__ = False

    status: str
    summary: str
    argv: tuple[str, ...] = ()
    output: str = ""
    results: Mapping[str, Any] | None = None


def detect_test_command(root: Path, environment: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the command that runs the tests of the project at ``root``; None if unknown."""
    path = environment.get("PATH", "")
    if _uses_pytest(root):
        return _pytest(path) or _unittest(root, path)
    if _python_tests(root):
        return _unittest(root, path) if not _pytest_style(root) else _pytest(path)
    script = _json(root / "package.json").get("scripts", {})
    written = script.get("test", "") if isinstance(script, dict) else ""
    if isinstance(written, str) and written and _NPM_DEFAULT not in written:
        return ("npm", "test")
    if (root / "go.mod").is_file():
        return ("go", "test", "./...")
    if (root / "Cargo.toml").is_file():
        return ("cargo", "test")
    if any(
        _MAKE_TEST.search(_text(root / name)) for name in ("GNUmakefile", "makefile", "Makefile")
    ):
        return ("make", "test")
    return None


async def run_tests(ground: Workspace, home: Path, command: str | None, policy: str) -> TestRun:
    """Run the tests of the worktree of ``ground``. ``home`` is the main checkout, whose
    virtual environment is used; ``command`` is the configured one.

    Without a sandbox they run only under the policy ``all``: they are the repository's own code, and
    a user has to allow it. Raises ``CommandRefused`` for an invalid command, ``ProgramMissing``, and
    ``MachineFault``.
    """
    ground = replace(ground, environment=_environment(ground, home))
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
    return TestRun(status, summary, argv, clip_start(output, MOST_OUTPUT), results)


def _is_there(program: str, ground: Workspace) -> bool:
    program_path = shutil.which(program, path=ground.environment.get("PATH", ""))
    return program_path is not None or (ground.root / program).exists()


def _environment(ground: Workspace, home: Path) -> dict[str, str]:
    """The tree has none of the files that git ignores: the environment is the main checkout's."""
    variables = {**ground.environment, "PYTHONDONTWRITEBYTECODE": "1"}
    for name in (".venv", "venv"):
        if (home / name / "pyvenv.cfg").is_file():
            variables["PATH"] = f"{home / name / 'bin'}:{variables.get('PATH', '')}"
            break
    if (ground.root / "src").is_dir():
        # An editable installation leads to the main checkout; the tree's own code comes first.
        variables["PYTHONPATH"] = str(ground.root / "src")
    return variables


def _uses_pytest(root: Path) -> bool:
    if any((root / name).is_file() for name in ("pytest.ini", "conftest.py", "tests/conftest.py")):
        return True
    try:
        tools = tomllib.loads(_text(root / "pyproject.toml")).get("tool", {})
    except tomllib.TOMLDecodeError:
        tools = {}
    if isinstance(tools, dict) and "pytest" in tools:
        return True
    return "[tool:pytest]" in _text(root / "setup.cfg") or "[pytest]" in _text(root / "tox.ini")


def _python_tests(root: Path) -> list[Path]:
    paths = [*root.glob("test_*.py"), *root.glob("*_test.py"), *root.glob("tests/**/test_*.py")]
    return sorted(path for path in paths if path.is_file())


def _pytest_style(root: Path) -> bool:
    """Whether a test is written so that only pytest runs it."""
    for path in _python_tests(root)[:50]:
        text = _text(path)
        if "import pytest" in text or re.search(r"^def test_", text, re.MULTILINE):
            return True
    return False


def _pytest(path: str) -> tuple[str, ...] | None:
    program = shutil.which("pytest", path=path)
    if program is None:
        return None
    # By the interpreter beside it: then the tree's root is where imports begin.
    python = Path(program).with_name("python3")
    runs = (str(python), "-m", "pytest") if python.exists() else (program,)
    return (*runs, "-q", "-p", "no:cacheprovider")


def _unittest(root: Path, path: str) -> tuple[str, ...]:
    python = shutil.which("python3", path=path) or "python3"
    folder = root / "tests"
    apart = folder.is_dir() and not any(root.glob("test_*.py"))
    if not apart:
        return (python, "-m", "unittest", "discover")
    whole = (folder / "__init__.py").is_file()
    start = ("-s", "tests", "-t", ".") if whole else ("-s", "tests")
    return (python, "-m", "unittest", "discover", *start)


def _json(path: Path) -> dict[str, Any]:
    try:
        read = json.loads(_text(path) or "{}")
    except json.JSONDecodeError:
        return {}
    return read if isinstance(read, dict) else {}


def _text(path: Path) -> str:
    """The file's text; nothing for one that is not there, a link, or no sensible size."""
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > _LARGEST:
            return ""
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
