"""Reading a store whose folder may not be written: a disk that is read-only, or another user's.

Even a reader writes beside a file with a log, so such a file is read as one that nobody changes, or, where
its log holds something, from a copy. Specified in ``docs/reference/journal.md``.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from cockpit.core.errors import StoreUnwritable
from cockpit.store.db.connection import connect, translate_errors
from cockpit.store.db.migrate import is_current

T = TypeVar("T")


def read_unwritable(path: Path, look: Callable[[sqlite3.Connection], T]) -> T:
    """Run ``look`` on the store at ``path`` without a write beside it.

    Raises the errors of :mod:`cockpit.core.errors`.
    """
    with translate_errors(path), ExitStack() as stack:
        log = path.with_name(f"{path.name}-wal")
        has_log = log.exists() and log.stat().st_size > 0
        if has_log:
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="cockpit-read-")))
            shutil.copyfile(path, folder / path.name)
            shutil.copyfile(log, folder / log.name)
            connection = connect(folder / path.name)
        else:
            connection = connect(path, read_only=True, immutable=True)
        stack.enter_context(closing(connection))
        if not is_current(connection):
            raise StoreUnwritable(
                f"{path} is of an older cockpit and cannot be brought up to date: its folder may not be"
                " written. Make it writable and start again."
            )
        return look(connection)
