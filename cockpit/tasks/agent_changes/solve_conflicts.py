"""Solve the conflicts of a branch in its own worktree: begin the merge there, commit it, or take it back.

The user's checkout is not touched, and the branch can be merged without conflicts afterwards. See
``docs/reference/chains.md``, the branch of a chain.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from cockpit.core.project_paths import ProjectPaths
from cockpit.store.db.database import Store
from cockpit.tasks.agent_changes.branch_change import find_branch, is_solving
from cockpit.tasks.agent_changes.read_change import require_on_branch
from cockpit.tasks.git import (
    WorktreeError,
    git,
    try_git,
    uncommitted_files,
    worktree_lock,
)

_MARKERS = (b"<<<<<<< ", b">>>>>>> ")
_MOST_NAMES = 5


async def begin_solving(store: Store, place: ProjectPaths, name: str) -> tuple[str, ...]:
    """Merge the target into the branch of ``name``, in its worktree; returns the files with markers in them.

    Raises :class:`WorktreeError`; then nothing is changed.
    """
    root, into, branch = await _find(store, place, name)
    async with worktree_lock(place):
        await require_on_branch(root, branch)
        if await is_solving(root):
            return await _list_unmerged(root)
        if left := await uncommitted_files(root):
            shown = ", ".join(left[:_MOST_NAMES])
            raise WorktreeError(
                f"The worktree has uncommitted files ({shown}); commit them there first."
            )
        ended = await try_git(root, "merge", "--no-commit", "--no-ff", "--no-verify", "-q", into)
        if not ended.ok and not await is_solving(root):
            raise WorktreeError(f"The merge could not begin: {ended.reason}")
        return await _list_unmerged(root)


async def finish_solving(store: Store, place: ProjectPaths, name: str) -> str:
    """Commit the merge that was begun; returns the commit.

    Raises :class:`WorktreeError` while conflict markers are left.
    """
    root, into, branch = await _find(store, place, name)
    async with worktree_lock(place):
        await require_on_branch(root, branch)
        if not await is_solving(root):
            raise WorktreeError("No merge has begun here.")
        unmerged = await _list_unmerged(root)
        marked = [path for path in unmerged if await asyncio.to_thread(_has_markers, root / path)]
        if marked:
            raise WorktreeError(f"Conflict markers are left in {', '.join(marked[:_MOST_NAMES])}.")
        await git(root, "add", "--all", "--", ".")
        short = into.removeprefix("refs/heads/")
        await git(root, "commit", "--no-verify", "-q", "-m", f"Merge {short} into {branch}")
        return (await git(root, "rev-parse", "HEAD")).strip()


async def abort_solving(store: Store, place: ProjectPaths, name: str) -> None:
    """Take the merge back that was begun: the worktree is as it was before. Raises :class:`WorktreeError`."""
    root, _, branch = await _find(store, place, name)
    async with worktree_lock(place):
        await require_on_branch(root, branch)
        if await is_solving(root):
            await git(root, "merge", "--abort")


async def _find(store: Store, place: ProjectPaths, name: str) -> tuple[Path, str, str]:
    branch = await find_branch(store, place, name)
    if branch.tree is None or not branch.into:
        raise WorktreeError(f"{name} has no branch that could conflict.")
    if branch.runs:
        raise WorktreeError(f"{name} is in progress; wait for it, or stop it first.")
    root = Path(branch.tree.path)
    if not await asyncio.to_thread((root / ".git").exists):
        raise WorktreeError("Its worktree is gone: press m, which makes it again, then come back.")
    return root, branch.into, branch.tree.branch


async def _list_unmerged(root: Path) -> tuple[str, ...]:
    listed = await git(root, "diff", "--name-only", "--diff-filter=U", "-z")
    return tuple(path for path in listed.split("\0") if path)


def _has_markers(file: Path) -> bool:
    try:
        lines = file.read_bytes().split(b"\n")
    except OSError:
        return False  # it was removed: that solves it
    return any(line.startswith(_MARKERS) for line in lines)
