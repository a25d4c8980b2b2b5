"""Marks of content: whether what an item reads can have changed since, without reading it.

A mark is made of what the operating system tells of files (size, times, inode); no file is opened and no
program started. Two equal marks mean the same content. An empty mark means that nothing is known. See
``docs/reference/guards.md``, served again.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache

from msgspec import Struct, field

from cockpit.access.confined_paths import PathRefused
from cockpit.access.git_folders import locate_git_folders
from cockpit.core.project.disk_marks import VERSION_FOLDERS, mark_file, mark_folder
from cockpit.observe.project_snapshot import ProjectSnapshot
from cockpit.observe.scope_items import ScopeItem

GENERATED = frozenset(
    ".venv venv node_modules __pycache__ .mypy_cache .pytest_cache .ruff_cache .tox".split()  # noqa: SIM905 - one line of names
)
"""Folders that are not looked at where the project's ``.gitignore`` names them."""
LARGEST_LIST = 1_000_000
"""Bytes of a ``.gitignore`` that is read."""
_ON_DISK = frozenset({"search", "tree", "symbol"})
_FROM_GIT = frozenset({"diff", "log"})


class ContentMarks(Struct):
    """The marks of one moment: the project is walked once at most."""

    ground: ProjectSnapshot
    _project: list[str] = field(default_factory=list)
    _git: list[str] = field(default_factory=list)

    def mark(self, item: ScopeItem) -> str:
        """Return the mark of what ``item`` reads; '' where it has none."""
        ground = self.ground
        if ground.rev is not None and item.kind in {"file", *_ON_DISK}:
            return f"rev:{ground.rev}"
        if item.kind == "file":
            return _mark_file(ground, item.ref)
        if item.kind in _ON_DISK:
            # What git ignores is not searched: its list of files is a part of the content.
            return _join(self._of_project(), self._of_git())
        if item.kind in _FROM_GIT:
            return _join(self._of_project(), self._of_git())
        return ""

    def _of_project(self) -> str:
        if not self._project:
            self._project.append(_mark_project(str(self.ground.root)))
        return self._project[0]

    def _of_git(self) -> str:
        if not self._git:
            self._git.append(_mark_git(self.ground))
        return self._git[0]


def mark_items(ground: ProjectSnapshot, items: Sequence[ScopeItem]) -> list[str]:
    """Return the mark of each item. It looks at files: not on the event loop."""
    marks = ContentMarks(ground)
    return [marks.mark(item) for item in items]


def _join(*marks: str) -> str:
    return "+".join(marks) if all(marks) else ""


def _mark_file(ground: ProjectSnapshot, ref: str) -> str:
    try:
        real = str(ground.confined.inside(ground.confined.relative(ref)))
    except (PathRefused, OSError):
        return ""
    mark = mark_file(real)
    return "" if mark in ("", "-") else f"{real}:{mark}"


def _mark_project(top: str) -> str:
    """Return the mark of the project's files, without folders of generated ones that git leaves out."""
    listed = f"{top}/.gitignore"
    mark = mark_file(listed)
    ignored = _read_ignored(listed, mark) if mark not in ("", "-") else frozenset[str]()
    return mark_folder(top, leave_out=VERSION_FOLDERS | ignored)


@lru_cache(maxsize=64)
def _read_ignored(path: str, mark: str) -> frozenset[str]:
    """Return the folders of generated files that a ``.gitignore`` names; read once for each ``mark``."""
    try:
        # A pipe in its place is not waited for.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            data = file.read(LARGEST_LIST + 1) or b""
    except OSError:
        return frozenset()
    lines = data.decode("utf-8", "replace").splitlines()
    if len(data) > LARGEST_LIST or any(line.startswith("!") for line in lines):
        return frozenset()  # something below one of them may be wanted again
    return GENERATED & {line.strip().strip("/") for line in lines}


def _mark_git(ground: ProjectSnapshot) -> str:
    """Return the mark of the branches, tags, index and HEAD; ``none`` without git."""
    folders = locate_git_folders(ground.root)
    if folders is None:
        return "" if _is_in_repository(str(ground.root)) else "none"
    own, common = folders.own, folders.common
    files = (f"{own}/HEAD", f"{own}/index", f"{common}/packed-refs", f"{common}/config")
    return _join(mark_folder(f"{common}/refs"), *map(mark_file, (*files, f"{common}/info/exclude")))


def _is_in_repository(top: str) -> bool:
    """Whether the folder or one above it has git's state, or cannot be told."""
    folder = top
    while True:
        if os.path.lexists(f"{folder}/.git"):
            return True
        above = os.path.dirname(folder)  # noqa: PTH120 - a string, as everything here
        if above == folder:
            return False
        folder = above
