"""Why a folder is no checkout of a git repository, for messages. See ``docs/reference/security.md``."""

from __future__ import annotations

from pathlib import Path

from cockpit.access.git_folders import read_git_folders


def is_bare(root: Path) -> bool:
    """Return whether ``root`` is a git directory itself: a bare repository, or the inside of ``.git``."""
    return read_git_folders(str(root)) is not None


def describe_missing_checkout(root: Path, need: str, advice: str) -> str:
    """Say in sentences why ``root`` is no checkout, and what to do.

    ``need`` is a clause on what needs one (*tasks need branches*); ``advice`` a sentence for a folder without
    any repository.
    """
    if is_bare(root):
        return (
            f"{root} is a bare repository, which has no checked out files, and {need}. Run `git clone {root}`"
            " and start cockpit in the clone."
        )
    return f"{root} is not a git repository, and {need}. {advice}"
