"""Merging a task's branch into its chain's branch, in the chain's own worktree.

Merging twice changes nothing more, an unfinished merge of a crash is undone first, and a conflict leaves
the branch as it was. See ``docs/reference/backlog.md``.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from msgspec import Struct

from cockpit.access.git_folders import locate_git_folders
from cockpit.core.project_paths import ProjectPaths
from cockpit.store.chains.worktrees import Worktree
from cockpit.tasks.git import (
    WorktreeError,
    commit_of,
    git,
    is_ancestor,
    printable,
    try_git,
    worktree_lock,
)

_ORPHAN_POLLS = 40
_ORPHAN_POLL_S = 0.05


class MergeResult(Struct, frozen=True):
    """How it ended: ``commit`` is the merge (None: there was nothing to merge); ``conflicts`` are
    the files that could not be merged, and then nothing was."""

    commit: str | None
    conflicts: tuple[str, ...] = ()


async def merge_task(
    place: ProjectPaths, chain: Worktree, task: Worktree, message: str
) -> MergeResult:
    """Merge ``task``'s branch into ``chain``'s. Raises :class:`WorktreeError`."""
    root = Path(chain.path)
    async with worktree_lock(place):
        await _undo_unfinished_merge(root)
        tip = await commit_of(root, f"refs/heads/{task.branch}")
        if tip is None:
            raise WorktreeError(f"The branch {task.branch} of {task.name} is gone.")
        if tip == task.base_commit:
            return MergeResult(None)
        before = await commit_of(root, "HEAD")
        result = await _merge(root, f"refs/heads/{task.branch}", chain.branch, message)
        if result.commit is not None and result.commit == before:
            return MergeResult(await _merge_commit_of(root, tip))  # merged before
        return result


async def merge_revision(
    place: ProjectPaths, chain: Worktree, revision: str, message: str
) -> MergeResult:
    """Merge another chain's work, which ``revision`` names, into ``chain``'s branch, unless it is in
    there. Raises :class:`WorktreeError`."""
    root = Path(chain.path)
    async with worktree_lock(place):
        await _undo_unfinished_merge(root)
        if await is_ancestor(root, revision, "HEAD"):
            return MergeResult(None)
        return await _merge(root, revision, chain.branch, message)


async def _merge(root: Path, revision: str, into: str, message: str) -> MergeResult:
    words = ("--no-ff", "--no-edit", "--quiet", "-m", printable(message))
    ended = await try_git(root, "merge", *words, revision)
    if ended.ok:
        return MergeResult(await commit_of(root, "HEAD"))
    listed = await git(root, "diff", "--name-only", "--diff-filter=U", "-z")
    conflicts = tuple(sorted(path for path in listed.split("\0") if path))
    await _undo_unfinished_merge(root)
    if not conflicts:
        name = revision.removeprefix("refs/heads/")
        raise WorktreeError(f"{name} could not be merged into {into}: {ended.reason}")
    return MergeResult(None, conflicts)


async def _undo_unfinished_merge(root: Path) -> None:
    """Undo an unfinished merge: only merges change this worktree."""
    lock, head = await _state_files(root, "index.lock", "MERGE_HEAD")
    if not (lock.exists() or head.exists()):
        return
    # A git whose cockpit was killed may be at its end still.
    for _ in range(_ORPHAN_POLLS):
        if not lock.exists():
            break
        await asyncio.sleep(_ORPHAN_POLL_S)
    lock.unlink(missing_ok=True)
    await git(root, "reset", "--quiet", "--hard", "HEAD")
    await git(root, "clean", "--quiet", "--force", "-d")


async def _state_files(root: Path, *names: str) -> list[Path]:
    """Return the files in which git keeps the state of the tree at ``root``."""
    if (folders := locate_git_folders(root)) is not None:
        return [Path(folders.own, name) for name in names]
    words = (word for name in names for word in ("--git-path", name))
    output = await git(root, "rev-parse", *words)
    return [root / line for line in output.splitlines()]


async def _merge_commit_of(root: Path, tip: str) -> str | None:
    """The merge that brought ``tip`` in."""
    listed = await git(root, "rev-list", "--merges", "--parents", "HEAD", f"^{tip}")
    for line in listed.splitlines():
        commit, _, *others = line.split()
        if tip in others:
            return commit
    return await commit_of(root, "HEAD")
