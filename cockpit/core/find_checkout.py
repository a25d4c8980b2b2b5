"""Find a project from its files alone, without starting git.

The result is that of :func:`cockpit.core.project_paths.locate_project`. Hook calls use it, because a process
for ``git`` would cost more than the rest of the call, and so does a machine without git.
"""

from __future__ import annotations

import os

from cockpit.core.state_folder import DATABASE, is_plain_project, project_folder

_SMALL = 8_192


class Checkout:
    """``root``: the top of this worktree; ``home``: the main checkout, which contains ``.cockpit``;
    ``identity``: the real path that the state is found by; ``repository``: whether git has a part in it.

    Not a dataclass: importing those takes as long as everything else in a hook call.
    """

    __slots__ = ("database", "home", "identity", "repository", "root", "state")

    def __init__(self, root: str, home: str, identity: str, *, repository: bool = True) -> None:
        self.root = root
        self.home = home
        self.identity = identity
        self.repository = repository
        self.state = project_folder(identity)
        self.database = os.path.join(self.state, DATABASE)


def find_checkout(start: str) -> Checkout | None:
    """Find the project that contains the real path ``start``; None where there is none."""
    without_git = ""
    folder = start
    while True:
        git = os.path.join(folder, ".git")
        if os.path.isdir(git):
            return Checkout(folder, folder, os.path.realpath(git))
        if os.path.isfile(git):
            common = _common_directory(folder, git)
            if not common:
                return None
            is_main = os.path.basename(common) == ".git"
            return Checkout(folder, os.path.dirname(common) if is_main else folder, common)
        if not without_git and is_plain_project(folder, start):
            without_git = folder
        above = os.path.dirname(folder)
        if above == folder:
            break
        folder = above
    return (
        Checkout(without_git, without_git, without_git, repository=False) if without_git else None
    )


def _common_directory(folder: str, git: str) -> str:
    """Return the real path of the common git directory that a ``.git`` file leads to; '' for none."""
    text = _read(git)
    if not text.startswith("gitdir:"):
        return ""
    own = os.path.join(folder, text.removeprefix("gitdir:").strip())
    return os.path.realpath(os.path.join(own, _read(os.path.join(own, "commondir")).strip()))


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read(_SMALL)
    except OSError:
        return ""
