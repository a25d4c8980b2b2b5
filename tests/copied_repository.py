"""Repositories for tests: each is made once in a process of tests, then copied."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

Make = Callable[[Path], object]
"""Makes a repository of an empty folder, without chance and without a path of the folder in it."""


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
