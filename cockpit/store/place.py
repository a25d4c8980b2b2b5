"""Where a project keeps its state: found from any linked worktree, made private.

``.cockpit/state/cockpit.db`` stands in the main checkout; every linked worktree finds it through
``git rev-parse --git-common-dir``. Outside Git the folder itself is the project.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from cockpit.store.errors import StoreUnwritable


@dataclass(frozen=True, slots=True)
class Place:
    """A project's folders. ``root`` is where files are read and written (this worktree's top),
    ``home`` the main checkout that holds ``.cockpit``; both are absolute. ``git`` tells whether Git
    is there at all."""

    root: Path
    home: Path
    git: bool

    @property
    def folder(self) -> Path:
        """``.cockpit``: for version control."""
        return self.home / ".cockpit"

    @property
    def state(self) -> Path:
        return self.folder / "state"

    @property
    def database(self) -> Path:
        return self.state / "cockpit.db"

    def prepare(self) -> None:
        """Make the state folder (0700) and its ``.gitignore``.

        Raises :class:`StoreUnwritable` when the folder cannot be made or leads out of the project.
        """
        try:
            self.folder.mkdir(mode=0o755, exist_ok=True)
            self.state.mkdir(mode=0o700, exist_ok=True)
            if self.state.resolve() != self.home.resolve() / ".cockpit" / "state":
                raise StoreUnwritable(
                    f"{self.state} is a link to {self.state.resolve()}; cockpit keeps its state inside"
                    " the project. Remove the link and start again."
                )
            self.state.chmod(0o700)
            ignore = self.state / ".gitignore"
            if not ignore.exists():
                ignore.write_text("*\n", encoding="utf-8")
        except OSError as error:
            raise StoreUnwritable(
                f"cockpit cannot keep its state in {self.state}: {error.strerror or error}. "
                "Make the folder writable, or start cockpit in a project of your own."
            ) from error


def find_place(start: Path) -> Place:
    """The project that ``start`` is in. Without Git: the nearest folder upwards that has
    ``.cockpit``, else ``start`` itself."""
    start = start.resolve()
    git = _git(start, "rev-parse", "--show-toplevel", "--git-common-dir")
    if git is not None:
        top, common = (start / part for part in git.splitlines()[:2])
        common = common.resolve()
        home = common.parent if common.name == ".git" else top.resolve()
        return Place(root=top.resolve(), home=home, git=True)
    for folder in (start, *start.parents):
        if (folder / ".cockpit").is_dir():
            return Place(root=folder, home=folder, git=False)
    return Place(root=start, home=start, git=False)


def _git(cwd: Path, *arguments: str) -> str | None:
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=cwd, env=env, capture_output=True, text=True, timeout=20
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
