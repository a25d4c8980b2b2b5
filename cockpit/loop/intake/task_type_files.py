"""The task types of one project, read again when a file of theirs changed.

See ``docs/reference/task-types.md``, files.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from cockpit.core.project.project_trust import TRUST_FILE
from cockpit.core.project_paths import ProjectPaths
from cockpit.loop.intake.task_types import LoadedTaskTypes, TaskType, load_task_types

_MOST = 1_000
"""Files of a folder that are looked at for a change."""


class TaskTypeFiles:
    """Task types by name, and one sentence for each file that is not used, both kept up to date in place."""

    def __init__(self, place: ProjectPaths, user_dir: Path | None) -> None:
        """Read them. ``user_dir`` is the user's configuration folder."""
        # Of the main checkout, as roles and settings: a task's agent can write in its worktree only.
        self._home, self._user_dir = place.home, user_dir
        folders = [] if user_dir is None else [user_dir / "task-types"]
        self._folders = (*folders, place.home / ".cockpit" / "task-types")
        self._trust_file = place.state / TRUST_FILE
        self._stamp: object = None
        self.types: dict[str, TaskType] = {}
        self.problems: list[str] = []
        self._apply(self._read_changed())

    async def refresh(self) -> bool:
        """Read the files again if one was added, changed or removed, or is trusted now.

        Returns whether anything was read. A running session keeps the context that it has; what it asks of
        its type from then on is the new file's.
        """
        loaded = await asyncio.to_thread(self._read_changed)
        self._apply(loaded)
        return loaded is not None

    def _read_changed(self) -> LoadedTaskTypes | None:
        stamp = (*map(_stamp_folder, self._folders), _stamp_file(self._trust_file))
        if stamp == self._stamp:
            return None
        loaded = load_task_types(self._home, self._user_dir)
        self._stamp = stamp
        return loaded

    def _apply(self, loaded: LoadedTaskTypes | None) -> None:
        if loaded is not None:
            self.types.clear()
            self.types.update(loaded.types)
            self.problems[:] = loaded.problems


def _stamp_folder(folder: Path) -> object:
    try:
        entries = sorted(folder.iterdir())[:_MOST]
    except OSError:
        return None
    return tuple((entry.name, _stamp_file(entry)) for entry in entries)


def _stamp_file(path: Path) -> object:
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
