"""Remove the state of a project that is gone. Specified in ``docs/reference/configuration.md``."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from cockpit.core.errors import CockpitError
from cockpit.core.project_paths import read_project_record
from cockpit.core.state_folder import DATABASE, describe_problem
from cockpit.store.journal.head_anchor import find_anchor_file


class StateRefused(CockpitError):
    """A state cannot be removed; the message says why, and nothing was changed."""

    code = "state_refused"


def remove_state(state: Path) -> None:
    """Delete the state of a project that is gone, with its anchor.

    Raises :class:`StateRefused` where the project exists or a process uses the store, and ``OSError``.
    """
    record = read_project_record(state)
    if record is None or record.exists:
        home = record.home if record is not None else "a project that it does not name"
        raise StateRefused(f"{state} belongs to {home}; it was not deleted.")
    if problem := describe_problem(str(state)):
        raise StateRefused(problem)
    database = state / DATABASE
    if database.exists():
        with closing(sqlite3.connect(database, timeout=0.2)) as connection:
            try:
                connection.execute("PRAGMA locking_mode=EXCLUSIVE")
                connection.execute("BEGIN EXCLUSIVE")
            except sqlite3.OperationalError as error:
                raise StateRefused(f"Another process uses {database}. End it first.") from error
            except sqlite3.DatabaseError:
                pass  # no database any more: nothing can use it
    if (anchor := find_anchor_file(database)) is not None:
        anchor.unlink(missing_ok=True)
    shutil.rmtree(state)
