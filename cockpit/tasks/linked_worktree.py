"""A linked worktree's own files, written and removed as ``git worktree`` does, with fewer processes.

``git worktree add`` starts three more of git, and ``git worktree remove`` one where none is needed. Where
anything about the repository is unusual, these functions do nothing and leave it to git.
See ``docs/reference/backlog.md``.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from pathlib import Path

from cockpit.access.git_folders import GitFolders, leads_back, locate_git_folders, read_commit
from cockpit.access.git_overrides import Setting
from cockpit.access.run_program import read_git_settings
from cockpit.tasks.git import note_plain_index, try_git

_UNUSUAL = re.compile(
    r"extensions\.(?!objectformat$).+|core\.(sharedrepository|sparsecheckout|worktree)"
)
"""Settings by which a worktree is more than the files that are written here."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
"""Names that git keeps as they are for the folder of a worktree's state."""


async def add_linked_worktree(home: Path, path: Path, branch: str, start: str) -> bool:
    """Check out the new ``branch`` at commit ``start`` in ``path``, which does not exist.

    Returns False where it is git's to do; then nothing is left. Until the files are there, the branch has no
    commit, by which a later process sees a checkout that was never finished.
    """
    folders = locate_git_folders(home)
    if folders is None or not _NAME.fullmatch(path.name):
        return False
    own = _state_folder(folders) / path.name
    if any(_is_unusual(setting) for setting in await read_git_settings(home)):
        return False
    if read_commit(folders, f"refs/heads/{branch}") != "" or _is_listed(own.parent, path):
        return False
    try:
        _write_files(own, path, branch)
        ended = await try_git(path, "reset", "--quiet", "--hard", start)
    except OSError:
        ended = None
    if ended is None or not ended.ok:
        for folder in (path, own):
            shutil.rmtree(folder, ignore_errors=True)
        return False
    note_plain_index(path)
    return True


def remove_linked_worktree(home: Path, path: Path) -> bool:
    """Remove the worktree at ``path`` with its state; returns False where it is git's to do."""
    folders, linked = locate_git_folders(home), locate_git_folders(path)
    if folders is None or linked is None or path.is_symlink() or not _is_own(folders, linked, path):
        return False
    try:
        shutil.rmtree(path)
        shutil.rmtree(os.path.realpath(linked.own))
    except OSError:
        return False
    with contextlib.suppress(OSError):  # others are there
        _state_folder(folders).rmdir()
    return True


def is_unknown_worktree(home: Path, path: Path) -> bool:
    """Whether there is nothing at ``path``, and git lists no worktree there, for certain."""
    folders = locate_git_folders(home)
    return (
        folders is not None
        and not os.path.lexists(path)
        and not _is_listed(_state_folder(folders), path)
    )


def _state_folder(folders: GitFolders) -> Path:
    """Return the folder of the states of all linked worktrees."""
    return Path(os.path.realpath(folders.common), "worktrees")


def _is_unusual(setting: Setting) -> bool:
    if setting.name == "core.bare":
        return setting.value != "false"
    return _UNUSUAL.fullmatch(setting.name) is not None


def _is_listed(worktrees: Path, path: Path) -> bool:
    """Whether git lists a worktree at ``path``, which may be gone, or of its name."""
    try:
        entries = os.listdir(worktrees)  # noqa: PTH208 - names only
    except FileNotFoundError:
        return False
    dot = f"{path}/.git"
    return any(entry == path.name or leads_back(f"{worktrees}/{entry}", dot) for entry in entries)


def _write_files(own: Path, path: Path, branch: str) -> None:
    """Write what makes ``path`` a worktree whose state is in ``own``.

    ``git worktree prune`` removes a state whose worktree is not there, so the worktree leads to it first. If
    it is removed all the same, the next file cannot be written.
    """
    real = Path(os.path.realpath(path.parent), path.name)
    real.mkdir()
    (real / ".git").write_text(f"gitdir: {own}\n", "utf-8", "surrogateescape")
    own.parent.mkdir(exist_ok=True)
    own.mkdir()
    (own / "gitdir").write_text(f"{real}/.git\n", "utf-8", "surrogateescape")
    (own / "HEAD").write_text(f"ref: refs/heads/{branch}\n", "utf-8", "surrogateescape")
    (own / "commondir").write_text("../..\n", "utf-8")


def _is_own(folders: GitFolders, linked: GitFolders, path: Path) -> bool:
    """Whether ``path`` is for certain a worktree of the repository, and not locked by the user."""
    own = os.path.realpath(linked.own)
    return (
        Path(own).parent == _state_folder(folders)
        and leads_back(own, f"{path}/.git")
        and not os.path.lexists(f"{own}/locked")
    )
