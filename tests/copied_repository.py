"""Git repositories for tests, each made once by git and copied from then on: a tenth of the work."""

# ruff: noqa: PTH102, PTH211 -- paths of pathlib take a third of the time here
from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

Make = Callable[[Path], object]
"""Makes a repository of an empty folder, without chance and without a path of the folder in it."""


@dataclass(frozen=True, slots=True)
class _Folder:
    path: str
    mode: int


@dataclass(frozen=True, slots=True)
class _File:
    path: str
    mode: int
    content: bytes
    times_ns: tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Link:
    path: str
    target: str


def copy_repository(make: Make, root: Path) -> Path:
    """Give ``root``, which is not there yet, what ``make`` makes of an empty folder; returns ``root``."""
    for entry in _entries(make):
        path = f"{root}/{entry.path}"
        match entry:
            case _Folder():
                os.mkdir(path, entry.mode)
            case _File():
                handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, entry.mode)
                os.write(handle, entry.content)
                os.utime(handle, ns=entry.times_ns)
                os.close(handle)
            case _Link():
                os.symlink(entry.target, path)
    return root


@cache
def _entries(make: Make) -> tuple[_Folder | _File | _Link, ...]:
    """What is in the repository, folders before what is in them.

    Git's templates are left out: a dozen samples of hooks, and words about them.
    """
    with tempfile.TemporaryDirectory(prefix="repository-") as folder:
        root = Path(folder, "original")
        root.mkdir()
        make(root)
        for sample in root.rglob(".git/hooks/*.sample"):
            sample.unlink()
        return (_Folder("", _mode(root)), *(_entry(path, root) for path in sorted(root.rglob("*"))))


def _entry(path: Path, root: Path) -> _Folder | _File | _Link:
    name = str(path.relative_to(root))
    if path.is_symlink():
        return _Link(name, str(path.readlink()))
    if path.is_dir():
        return _Folder(name, _mode(path))
    state = path.stat()
    return _File(name, _mode(path), path.read_bytes(), (state.st_atime_ns, state.st_mtime_ns))


def _mode(path: Path) -> int:
    return path.stat().st_mode & 0o777
