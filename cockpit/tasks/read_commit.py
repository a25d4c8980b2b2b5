"""Read which commit a name stands for from git's own files, without starting git.

A task asks this dozens of times. Only what is certain is answered here: the reference ``HEAD`` or
``refs/heads/…`` of a worktree, where git keeps it in a file of its own. Everything else (packed and other
kinds of storage, names that are missing) is git's to answer.
"""

from __future__ import annotations

import re
from pathlib import Path

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_BRANCH = re.compile(r"refs/heads/(?!.*(?:\.\.|//|/\.|@\{))[^\x00-\x20~^:?*\[\\]+")


def read_commit(worktree: Path, name: str) -> str | None:
    """Return the id of the commit that ``name`` stands for; None leaves the question to git."""
    try:
        folder = _git_folder(worktree)
        if folder is None:
            return None
        if name == "HEAD":
            head = (folder / "HEAD").read_text("utf-8").strip()
            if not head.startswith("ref: "):
                return head if _COMMIT.fullmatch(head) else None
            name = head.removeprefix("ref: ")
        if not _BRANCH.fullmatch(name):
            return None
        commit = (_common_folder(folder) / name).read_text("utf-8").strip()
    except (OSError, UnicodeError):
        return None
    return commit if _COMMIT.fullmatch(commit) else None


def _git_folder(worktree: Path) -> Path | None:
    """The folder of a worktree's own state; None where ``worktree`` is no worktree's top."""
    git = worktree / ".git"
    if git.is_dir():
        return git
    kind, _, folder = git.read_text("utf-8").partition(": ")
    return worktree / folder.strip() if kind == "gitdir" else None


def _common_folder(folder: Path) -> Path:
    """The folder with the branches of all worktrees."""
    common = folder / "commondir"
    return folder / common.read_text("utf-8").strip() if common.exists() else folder
