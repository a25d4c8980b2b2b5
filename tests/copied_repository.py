"""Repositories for tests, small ones; larger ones are made once in a process of tests, then copied."""

from __future__ import annotations

import atexit
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

Make = Callable[[Path], object]
"""Makes a repository of an empty folder, without chance and without a path of the folder in it."""


def git(root: Path, *words: str) -> str:
    """Run git; returns what it prints, without blanks around it."""
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def begin_repository(root: Path, files: Mapping[str, str]) -> Path:
    """Make a repository of a new or empty folder, with one commit of ``files``; returns ``root``."""
    root.mkdir(exist_ok=True)
    git(root, "init", "-q", "-b", "main")
    git(root, "config", "user.name", "Ada")
    git(root, "config", "user.email", "ada@example.org")
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    git(root, "add", "-A")
    git(root, "commit", "-q", "--allow-empty", "-m", "Begin")
    return root


def copy_repository(make: Make, root: Path) -> Path:
    """Give ``root``, which is not there yet, what ``make`` makes of an empty folder; returns ``root``."""
    shutil.copytree(_original(make), root, symlinks=True)
    return root


@cache
def _original(make: Make) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="repository-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    root = folder / "original"
    root.mkdir()
    make(root)
    return root
