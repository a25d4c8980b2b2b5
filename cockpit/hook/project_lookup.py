"""Find the project of a hook call without starting git.

The result is that of :func:`cockpit.core.project_paths.locate_project`, from the files alone: a process
for ``git`` would cost more than the rest of the call.
"""

from __future__ import annotations

import os

_SMALL = 8_192


class Checkout:
    """``root``: the top of this worktree; ``home``: the main checkout, which contains ``.cockpit``.

    Not a dataclass: importing those takes as long as everything else in a hook call.
    """

    __slots__ = ("home", "root")

    def __init__(self, root: str, home: str) -> None:
        self.root = root
        self.home = home

    @property
    def state(self) -> str:
        """Return the folder of the project's state."""
        return os.path.join(self.home, ".cockpit", "state")

    @property
    def database(self) -> str:
        return os.path.join(self.state, "cockpit.db")


def find_checkout(folder: str) -> Checkout | None:
    """Find the cockpit project that ``folder`` is in, without creating anything.

    Returns None where there is none, or where a link leads out of it.
    """
    try:
        checkout = _find(os.path.realpath(folder))
    except (OSError, ValueError):
        return None  # no path at all
    if checkout is None:
        return None
    linked = (os.path.dirname(checkout.state), checkout.state, checkout.database)
    if any(os.path.islink(path) for path in linked) or not os.path.isfile(checkout.database):
        return None
    return checkout


def _find(start: str) -> Checkout | None:
    without_git: Checkout | None = None
    folder = start
    while True:
        git = os.path.join(folder, ".git")
        if os.path.isdir(git):
            return Checkout(folder, folder)
        if os.path.isfile(git):
            return Checkout(folder, _main_checkout(folder, git))
        if without_git is None and os.path.isdir(os.path.join(folder, ".cockpit")):
            without_git = Checkout(folder, folder)
        above = os.path.dirname(folder)
        if above == folder:
            return without_git
        folder = above


def _main_checkout(folder: str, git: str) -> str:
    """Return the main checkout of a linked worktree; ``folder`` itself for a submodule."""
    text = _read(git)
    if not text.startswith("gitdir:"):
        return folder
    own = os.path.join(folder, text.removeprefix("gitdir:").strip())
    common = os.path.realpath(os.path.join(own, _read(os.path.join(own, "commondir")).strip()))
    return os.path.dirname(common) if os.path.basename(common) == ".git" else folder


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read(_SMALL)
    except OSError:
        return ""
