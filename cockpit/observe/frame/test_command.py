"""The command that runs a project's tests, as its files suggest, and the environment that it runs in.

See ``docs/reference/backlog.md``.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

_MAKE_TEST = re.compile(r"^test\s*:(?!=)", re.MULTILINE)
_NPM_DEFAULT = "no test specified"
_TEST_FILE = re.compile(r"test_.*\.py|.*_test\.py")
_LARGEST = 1_000_000
"""Bytes of a file that is read."""
MOST_ENTRIES = 10_000
"""Entries of the tests' folder that are looked at."""
_MOST_TESTS = 50
"""Test files whose style is looked at."""


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


def find_test_environment(root: Path, home: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with which the tests of the worktree ``root`` run.

    A worktree has none of the files that git ignores: the virtual environment is that of the main checkout
    ``home``.
    """
    variables = {**environment, "PYTHONDONTWRITEBYTECODE": "1"}
    for name in (".venv", "venv"):
        if (home / name / "pyvenv.cfg").is_file():
            variables["PATH"] = f"{home / name / 'bin'}:{variables.get('PATH', '')}"
            break
    if (root / "src").is_dir():
        # An editable installation leads to the main checkout; the tree's own code comes first.
        variables["PYTHONPATH"] = str(root / "src")
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
    """List test files in the root and below ``tests``, sorted, the first of many."""
    paths = [path for path in sorted(root.iterdir()) if _TEST_FILE.fullmatch(path.name)]
    paths += _below(root / "tests")
    return [path for path in paths if path.is_file()][:_MOST_TESTS]


def _below(folder: Path) -> Iterator[Path]:
    """Yield the test files below a folder, in a fixed order; a very large one is not walked to its end."""
    left = MOST_ENTRIES
    for place, folders, files in os.walk(folder):
        folders.sort()
        yield from (
            Path(place, name)
            for name in sorted(files)
            if name.startswith("test_") and name.endswith(".py")
        )
        left -= len(folders) + len(files)
        if left <= 0:
            return


def _pytest_style(root: Path) -> bool:
    """Whether a test is written so that only pytest runs it."""
    for path in _python_tests(root):
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
