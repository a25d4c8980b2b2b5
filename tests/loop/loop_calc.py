"""A small project with a bug, and its test; git as a stranger would call it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

CALC = "def add(a, b):\n    return a - b\n"
TEST = (
    "import unittest\n\nfrom calc import add\n\n\n"
    "class Adding(unittest.TestCase):\n"
    "    def test_add(self):\n        self.assertEqual(add(1, 2), 3)\n"
)


def git(root: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-c", "user.name=T", "-c", "user.email=t@example.invalid", *arguments],
        cwd=root,
        env=os.environ.copy(),
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


def make_calc(root: Path, files: Mapping[str, str] | None = None) -> None:
    """Make a repository of the function and its test, or of ``files``."""
    for name, text in (files or {"calc.py": CALC, "test_calc.py": TEST}).items():
        (root / name).write_text(text)
    git(root, "init", "-q", "-b", "main")
    git(root, "config", "user.name", "T")
    git(root, "config", "user.email", "t@example.invalid")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "Add calc")
