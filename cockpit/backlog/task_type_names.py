"""The types that a task of the backlog can have: the built-in ones, and those of task-type files.

A file of the user's or the project's ``task-types`` folder adds its name, unless its sessions need a pull
request or a range of commits, which no task has. Specified in ``docs/reference/task-types.md``.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from cockpit.backlog.validation import TASK_TYPES
from cockpit.core.project_paths import home_of_database, user_folder


def read_names(home: Path | None) -> tuple[str, ...]:
    """Read the task-type files of the user and of the project at ``home``.

    Returns the names that a task can have as its type, the built-in ones first.
    """
    # Most commands need the built-in types only.
    from cockpit.loop.intake.layered_files import LAYERS
    from cockpit.loop.intake.task_types import load_task_types

    types = load_task_types(home, user_folder(os.environ)).types.values()
    added = [
        kind.name for kind in types if kind.source_layer != LAYERS[0] and not kind.needs_target
    ]
    return tuple(dict.fromkeys((*TASK_TYPES, *added)))


def read_names_of_store(connection: sqlite3.Connection) -> tuple[str, ...]:
    """Read the task-type files of the user and of the store's project; return the names."""
    rows = connection.execute("PRAGMA database_list").fetchall()
    (file,) = (file for _, name, file in rows if name == "main")
    return read_names(home_of_database(Path(file)) if file else None)


def names_for(connection: sqlite3.Connection, value: object) -> tuple[str, ...]:
    """Return the names that ``value`` is checked against; files are read only for a custom type."""
    return TASK_TYPES if value is None or value in TASK_TYPES else read_names_of_store(connection)
