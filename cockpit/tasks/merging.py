"""Merging a task's branch into its chain's, in the chain's own working tree.

A merge is probed before it is made: done twice it is done once, and one that a crash cut off is undone
first. A conflict changes nothing. Source: design of work, "Doing a task".
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from cockpit.core.project_paths import ProjectPaths
from cockpit.store.chains.worktrees import Worktree
from cockpit.tasks.git import (
    WorktreeError,
    commit_of,
    error_line,
    git,
    is_ancestor,
    printable,
    try_git,
    worktree_lock,
)

_ORPHAN_POLLS = 40
_ORPHAN_POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class MergeResult:
    """How it ended: ``commit`` is the merge (None: there was nothing to merge); ``conflicts`` are
    the files that could not be merged, and then nothing was."""

    commit: str | None
    conflicts: tuple[str, ...] = ()


async def merge_task(
    place: ProjectPaths, chain: Worktree, task: Worktree, message: str
) -> MergeResult:
    """Merge ``task``'s branch into ``chain``'s. Raises :class:`WorktreeTrouble`."""
    where = Path(chain.path)
    async with worktree_lock(place):
        await _undo_cut_off(where)
        tip = await commit_of(where, f"refs/heads/{task.branch}")
        if tip is None:
            raise WorktreeError(f"The branch {task.branch} of {task.name} is gone.")
        if tip == task.base_commit:
            return MergeResult(None)
        if await is_ancestor(where, tip, "HEAD"):
            return MergeResult(await _merge_of(where, tip))
        return await _made(where, f"refs/heads/{task.branch}", chain.branch, message)


async def merge_revision(
    place: ProjectPaths, chain: Worktree, revision: str, message: str
) -> MergeResult:
    """Merge another chain's work, which ``revision`` names, into ``chain``'s branch, unless it is in
    there. Raises :class:`WorktreeTrouble`."""
    where = Path(chain.path)
    async with worktree_lock(place):
        await _undo_cut_off(where)
        if await is_ancestor(where, revision, "HEAD"):
            return MergeResult(None)
        return await _made(where, revision, chain.branch, message)


async def _made(where: Path, revision: str, into: str, message: str) -> MergeResult:
    words = ("--no-ff", "--no-edit", "--quiet", "-m", printable(message))
    ended = await try_git(where, "merge", *words, revision)
    if ended.ok:
        return MergeResult(await commit_of(where, "HEAD"))
    listed = await git(where, "diff", "--name-only", "--diff-filter=U", "-z")
    conflicts = tuple(sorted(path for path in listed.split("\0") if path))
    await _undo_cut_off(where)
    if not conflicts:
        name = revision.removeprefix("refs/heads/")
        raise WorktreeError(f"{name} could not be merged into {into}: {error_line(ended)}")
    return MergeResult(None, conflicts)


async def _undo_cut_off(where: Path) -> None:
    """Undo a merge that was begun and not finished: nobody works in this tree but merges."""
    asked = ("index.lock", "MERGE_HEAD")
    told = await git(where, "rev-parse", *(word for name in asked for word in ("--git-path", name)))
    lock, head = (where / line for line in told.splitlines())
    if not (lock.exists() or head.exists()):
        return
    # A git whose cockpit was killed may be at its end still.
    for _ in range(_ORPHAN_POLLS):
        if not lock.exists():
            break
        await asyncio.sleep(_ORPHAN_POLL_S)
    lock.unlink(missing_ok=True)
    await git(where, "reset", "--quiet", "--hard", "HEAD")
    await git(where, "clean", "--quiet", "--force", "-d")


async def _merge_of(where: Path, tip: str) -> str | None:
    """The merge that brought ``tip`` in."""
    listed = await git(where, "rev-list", "--merges", "--parents", "HEAD", f"^{tip}")
    for line in listed.splitlines():
        commit, _, *others = line.split()
        if tip in others:
            return commit
    return await commit_of(where, "HEAD")
