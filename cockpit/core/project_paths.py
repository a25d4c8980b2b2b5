"""Where a project's files and its state are.

The state is a folder of the user's own state folder (:mod:`cockpit.core.state_folder`), found by the common
git directory, so all worktrees of a repository share it. Outside Git the folder itself is the project.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from cockpit.core.errors import CockpitError, StoreReadOnly, StoreUnwritable
from cockpit.core.fenced_text import make_visible
from cockpit.core.find_checkout import find_checkout
from cockpit.core.project.safe_git import ask_git, why_git_refuses
from cockpit.core.state_folder import (
    DATABASE,
    VARIABLE,
    config_root,
    create_folder,
    describe_problem,
    project_folder,
    state_root,
)

OWN_FOLDER = ".cockpit"
"""The folder of cockpit in a checkout."""

ROOT_TOKEN = "root.token"  # noqa: S105 - a file's name
"""The file of a state folder with the project's root token."""

GENERATED_FILES = """\
# Written by cockpit: the files that it generates, this one included. Your own files in this folder
# (config.toml, context.md, roles/, task-types/) belong into version control.
/.gitignore
/reports/
/reviews/
"""
"""The ``.gitignore`` of ``.cockpit``."""


class GitRefuses(CockpitError):
    """There is a repository, and git does not work in it; the message has git's own words."""

    code = "git_refuses"


def user_folder(env: Mapping[str, str]) -> Path:
    """Return the folder of the user's own files: configuration, task types, non-negotiables."""
    folder = env.get("COCKPIT_CONFIG_DIR", "").strip()
    if folder:
        return Path(folder).expanduser()
    return Path(config_root())


PROJECT_FILE = "project.json"
"""The file of a state folder that says whose state it is."""
_LARGEST_FILE = 65_536


class ProjectRecord(Struct, frozen=True):
    """The content of a state folder's ``project.json``."""

    identity: Path
    """The common git directory, or the folder of a project without git; absolute."""
    home: Path
    """The main checkout."""
    git: bool

    @property
    def exists(self) -> bool:
        """Whether the project is still at the place that the record names."""
        return self.identity.is_dir()


def read_project_record(state: Path) -> ProjectRecord | None:
    """Return whose state the folder ``state`` is; None where no readable ``project.json`` says it."""
    try:
        with (state / PROJECT_FILE).open("rb") as file:
            body = json.loads(file.read(_LARGEST_FILE))
        return ProjectRecord(Path(body["identity"]), Path(body["home"]), bool(body["git"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_project_record(state: Path, record: ProjectRecord) -> None:
    """Write ``project.json`` in one step. Raises ``OSError``."""
    body = {"identity": str(record.identity), "home": str(record.home), "git": record.git}
    partial = state / f".{PROJECT_FILE}.{os.getpid()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(partial, flags, 0o600), "w", encoding="utf-8") as file:
        file.write(json.dumps({"version": 1, **body}, indent=1) + "\n")
    partial.replace(state / PROJECT_FILE)


def list_states() -> list[Path]:
    """List the state folders of all projects of this user, by name."""
    folder = Path(state_root(), "projects")
    try:
        return sorted(path for path in folder.iterdir() if path.is_dir() and not path.is_symlink())
    except OSError:
        return []


def list_abandoned_states() -> list[tuple[Path, ProjectRecord]]:
    """List the states whose project is gone from the place that they name: deleted, moved, or not mounted."""
    return [
        (state, record)
        for state in list_states()
        if (record := read_project_record(state)) is not None and not record.exists
    ]


def home_of_database(database: Path) -> Path | None:
    """Return the main checkout whose :attr:`ProjectPaths.database` this is; None for another file."""
    record = read_project_record(database.parent) if database.name == DATABASE else None
    return record.home if record is not None else None


class ProjectPaths(Struct, frozen=True):
    """The folders of a project."""

    root: Path
    """The top of this worktree, where files are read and written; absolute."""
    home: Path
    """The main checkout, which contains ``.cockpit``; absolute."""
    git: bool
    """Whether the project is a Git repository."""
    common: Path | None = None
    """The real path of the common git directory, where it is not ``.git`` of the main checkout."""

    @property
    def identity(self) -> Path:
        """The real path that the state is found by."""
        return self.common or (self.home / ".git" if self.git else self.home)

    @property
    def folder(self) -> Path:
        """``.cockpit``, which belongs into version control."""
        return self.home / OWN_FOLDER

    @property
    def state(self) -> Path:
        """The folder of the store, logs and worktrees, outside every checkout."""
        return Path(project_folder(str(self.identity)))

    @property
    def database(self) -> Path:
        return self.state / DATABASE

    def prepare(self) -> None:
        """Create the state folder, closed to other users, and record whose it is.

        Raises :class:`StoreUnwritable` when the folder cannot be created, is not the user's own, or when
        ``COCKPIT_STATE_DIR`` leads into the project.
        """
        state = self.state
        if os.environ.get(VARIABLE, "").strip():
            self._refuse_inside(Path(state_root()))
        if problem := describe_problem(str(state)):
            raise StoreUnwritable(problem)
        try:
            create_folder(str(state))
            if problem := describe_problem(str(state)):
                raise StoreUnwritable(problem)
            recorded = read_project_record(state)
            if recorded is None or (recorded.identity, recorded.home) != (self.identity, self.home):
                write_project_record(state, ProjectRecord(self.identity, self.home, self.git))
        except OSError as error:
            kind = (
                StoreReadOnly
                if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM)
                else StoreUnwritable
            )
            raise kind(
                f"cockpit cannot write its state to {state}: {error.strerror or error}. "
                f"Make the folder writable, or set {VARIABLE} to another one."
            ) from error
        for folder in dict.fromkeys((self.folder, self.root / OWN_FOLDER)):
            if folder.is_dir() and not folder.is_symlink():
                ignore_generated_files(folder)

    def _refuse_inside(self, root: Path) -> None:
        for checkout in (self.root, self.home):
            if root.is_relative_to(checkout):
                raise StoreUnwritable(
                    f"{VARIABLE} leads to {root}, inside the project {checkout}; cockpit's state never"
                    " comes from a checkout. Set it to a folder outside."
                )


def ignore_generated_files(folder: Path) -> None:
    """Create ``.gitignore`` in a ``.cockpit`` without one; a folder that is read-only stays as it is."""
    ignore = folder / ".gitignore"
    if ignore.exists() or ignore.is_symlink() or not os.access(folder, os.W_OK):
        return
    partial = folder / f".gitignore.{os.getpid()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(partial, flags, 0o666), "w", encoding="utf-8") as file:
            file.write(GENERATED_FILES)
    except FileExistsError:
        return  # never through a link that came with the checkout
    partial.replace(ignore)  # in one step: another process may start in this project as well


def locate_project(start: Path) -> ProjectPaths:
    """Find the project that contains ``start``.

    Without Git it is the nearest parent folder below the home folder with state of the user's or with a
    ``.cockpit`` of theirs that says something, else ``start`` itself. Raises :class:`GitRefuses` where there
    is a repository that git does not take.
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
        apart = None if common == home / ".git" else common
        return ProjectPaths(root=top.resolve(), home=home, git=True, common=apart)
    # A machine without git must find the same state, or it would begin another one.
    checkout = find_checkout(str(start))
    if checkout is None:
        return ProjectPaths(root=start, home=start, git=False)
    if checkout.repository and (why := why_git_refuses(start)):
        advice = (
            ". Change to one of them; `git worktree list` names them" if "work tree" in why else ""
        )
        raise GitRefuses(
            f"git does not work in {start}, so nothing was done. It says: {make_visible(why)}{advice}"
        )
    identity = Path(checkout.identity) if checkout.repository else None
    return ProjectPaths(
        root=Path(checkout.root), home=Path(checkout.home), git=False, common=identity
    )


def _git(cwd: Path, *options: str) -> str | None:
    """Return the output of ``git rev-parse`` without its last newline; None outside a worktree."""
    answer = ask_git(cwd, "rev-parse", *options)
    return None if answer is None else os.fsdecode(answer.removesuffix(b"\n"))
