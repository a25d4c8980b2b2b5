"""Repositories and an empty store for tests: each is made once in a process of tests, then copied."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from state_for_tests import anchor_copy

from cockpit.core.clock import RandomIds, SystemClock
from cockpit.store.db.database import Store

Make = Callable[[Path], object]
"""Makes a repository of an empty folder, without chance and without a path of the folder in it."""


def copy_repository(make: Make, root: Path) -> Path:
    """Give ``root``, which is not there yet, what ``make`` makes of an empty folder; returns ``root``."""
    shutil.copytree(_original(make), root, symlinks=True)
    return root


def open_empty_store(database: Path) -> Store:
    """Open a store that nothing was written to, at a place where none is."""
    database.touch(0o600)
    database.write_bytes(_empty_store())
    anchor_copy(database)
    return Store.open(database, SystemClock(), RandomIds())


@cache
def _empty_store() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder, "cockpit.db")
        Store.open(database).close()
        return database.read_bytes()


@cache
def _original(make: Make) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="repository-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    root = folder / "original"
    root.mkdir()
    make(root)
    return root
