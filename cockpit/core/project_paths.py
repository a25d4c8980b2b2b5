"""Where a project keeps its state: the same folder from every worktree, readable by the owner only.

``.cockpit/state/cockpit.db`` is in the main checkout; linked worktrees find it through ``git
rev-parse --git-common-dir``. Outside Git the folder itself is the project.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cockpit.core.errors import StoreUnwritable

OWN_FOLDER = ".cockpit"
"""The folder of cockpit in a checkout."""

GENERATED_FILES = """\
# Written by cockpit: the files that it generates, this one included. Your own files in this folder
# (config.toml, context.md, roles/, task-types/) belong into version control.
/.gitignore
/reports/
/reviews/
/state/
"""
"""The ``.gitignore`` of ``.cockpit``."""


def user_folder(env: Mapping[str, str]) -> Path:
    """Return the folder of the user's own files: configuration, task types, non-negotiables."""
    folder = env.get("COCKPIT_CONFIG_DIR", "").strip()
    if folder:
        return Path(folder).expanduser()
    from platformdirs import user_config_path

    return user_config_path("cockpit", appauthor=False)


def home_of_database(database: Path) -> Path | None:
    """Return the main checkout whose :attr:`ProjectPaths.database` this is; None for another file."""
    home = database.parents[2] if len(database.parents) > 2 else database
    return home if ProjectPaths(home, home, git=False).database == database else None


@dataclass(frozen=True, slots=True)
class ProjectPaths:
    """The folders of a project."""

    root: Path
    """The top of this worktree, where files are read and written; absolute."""
    home: Path
    """The main checkout, which contains ``.cockpit``; absolute."""
    git: bool
    """Whether the project is a Git repository."""

    @property
    def folder(self) -> Path:
        """``.cockpit``, which belongs into version control."""
        return self.home / OWN_FOLDER

    @property
    def state(self) -> Path:
        """The folder of the database, which does not."""
        return self.folder / "state"

    @property
    def database(self) -> Path:
        return self.state / "cockpit.db"

    def prepare(self) -> None:
        """Create the state folder (mode 0700), and what keeps cockpit's own files out of git's sight.

        Raises :class:`StoreUnwritable` when the folder cannot be created or leads out of the
        project.
        """
        try:
            self.folder.mkdir(mode=0o755, exist_ok=True)
            # Checked before anything is created inside: a link would lead it elsewhere.
            _refuse_link(self.folder)
            self.state.mkdir(mode=0o700, exist_ok=True)
            _refuse_link(self.state)
            self.state.chmod(0o700)
            ignore = self.state / ".gitignore"
            if not ignore.exists():
                _refuse_link(ignore)
                with ignore.open("x", encoding="utf-8") as file:
                    file.write("*\n")
            ignore_generated_files(self.folder)
            linked = self.root / OWN_FOLDER
            if self.root != self.home and linked.is_dir():  # it has reviews of its own
                _refuse_link(linked)
                ignore_generated_files(linked)
        except FileExistsError as error:
            if not (self.state.is_dir() and (self.state / ".gitignore").is_file()):
                raise StoreUnwritable(
                    f"{error.filename} blocks the path of cockpit's state. Move it away and start again."
                ) from error
        except OSError as error:
            raise StoreUnwritable(
                f"cockpit cannot write its state to {self.state}: {error.strerror or error}. "
                "Make the folder writable, or start cockpit in another project."
            ) from error


def ignore_generated_files(folder: Path) -> None:
    """Create ``.gitignore`` in a ``.cockpit`` without one; a folder that is read-only stays as it is."""
    ignore = folder / ".gitignore"
    if ignore.exists() or ignore.is_symlink() or not os.access(folder, os.W_OK):
        return
    # Beside it, as a worktree may be on another disk than the state.
    partial = folder / f".gitignore.{os.getpid()}"
    partial.write_text(GENERATED_FILES, encoding="utf-8")
    partial.replace(ignore)  # in one step: another process may start in this project as well


def locate_project(start: Path) -> ProjectPaths:
    """Find the project that contains ``start``.

    Without Git it is the nearest parent folder with ``.cockpit``, else ``start`` itself.
    """
    start = start.resolve()
    options = ("--show-toplevel", "--git-common-dir")
    answer = _git(start, *options)
    if answer is not None:
        lines = answer.split("\n")
        if len(lines) != len(options):
            # A path contains a newline: ask for one path at a time.
            lines = [_git(start, option) or "" for option in options]
        top, common = start / lines[0], (start / lines[1]).resolve()
        if not (top / ".git").exists():
            raise StoreUnwritable(
                f"The repository's own setting core.worktree makes {top} the project, which holds no "
                "repository. Remove that setting (git config --unset core.worktree) and start again."
            )
        home = common.parent if common.name == ".git" else top.resolve()
        return ProjectPaths(root=top.resolve(), home=home, git=True)
    for folder in (start, *start.parents):
        if (folder / ".cockpit").is_dir():
            return ProjectPaths(root=folder, home=folder, git=False)
    return ProjectPaths(root=start, home=start, git=False)


def _refuse_link(path: Path) -> None:
    if path.is_symlink():
        raise StoreUnwritable(
            f"{path} is a link to {path.resolve()}; cockpit keeps its state inside the project. "
            "Remove the link and start again."
        )


def _git(cwd: Path, *options: str) -> str | None:
    """Return the output of ``git rev-parse`` without its last newline; None outside a worktree."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        result = subprocess.run(
            ["git", "-c", "safe.bareRepository=explicit", "rev-parse", *options],
            cwd=cwd,
            env=env,
            capture_output=True,
            timeout=20,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return os.fsdecode(result.stdout.removesuffix(b"\n")) if result.returncode == 0 else None
