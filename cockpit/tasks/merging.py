"""Merging a task's branch into its chain's branch, in the chain's own worktree.

Merging twice changes nothing more, an unfinished merge of a crash is undone first, and a conflict leaves
the branch as it was. See ``docs/reference/backlog.md``.
"""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

from msgspec import Struct

from cockpit.access.git_folders import locate_git_folders
from cockpit.backlog import service
from cockpit.core.project_paths import ProjectPaths
from cockpit.store.backlog import dependencies, tasks
from cockpit.store.chains import task_runs, worktrees
from cockpit.store.chains.worktrees import Worktree
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.tasks.git import (
    WorktreeError,
    commit_of,
    git,
    is_ancestor,
    printable,
    try_git,
    worktree_lock,
)
from cockpit.tasks.task_context import TaskContext
from cockpit.tasks.worktree import ensure_chain_worktree, ensure_task_worktree

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


_BY = "engine"
_STARTED = ("active", "conflict", "kept")


async def prepare_worktree(context: TaskContext, task_id: str) -> Worktree:
    """Return the task's worktree, created if needed. Raises ``WorktreeError``."""
    await prepare_chain_branch(context, task_id)
    return await ensure_task_worktree(
        context.store,
        context.place,
        task_id,
        chain_id=context.chain_id,
        chain_branch=context.chain_branch,
        tip=context.store.read_now(lambda connection: _last_commit(connection, task_id)),
    )


async def prepare_chain_branch(context: TaskContext, task_id: str) -> Worktree:
    """Return the chain's worktree, with the work that the task builds on. Raises ``WorktreeError``."""
    chain = await ensure_chain_worktree(
        context.store, context.place, context.chain_branch, chain_id=context.chain_id
    )
    await _merge_dependencies(context.store, context.place, chain, task_id)
    return chain


def _last_commit(connection: sqlite3.Connection, task_id: str) -> str:
    """Return the commit of the task's last finished step; empty for none."""
    steps = reversed(task_runs.select_steps(connection, task_id))
    return next((str(step.detail["tip"]) for step in steps if step.detail.get("tip")), "")


async def _merge_dependencies(
    store: Store, place: ProjectPaths, chain: Worktree, task_id: str
) -> None:
    """Merge the work of the task's dependencies into ``chain``'s branch where it is missing.

    A task that has a worktree has started already. Work that conflicts is left out and noted on the task:
    the user may have merged it in other commits. Raises ``WorktreeError``.
    """
    worktree = store.read_now(lambda connection: worktrees.find(connection, task_id))
    if worktree is not None and worktree.status in _STARTED:
        return
    for other in store.read_now(lambda connection: _dependency_worktrees(connection, task_id)):
        revision = await _revision(place, other)
        if revision is None:
            continue
        title = store.read_now(
            lambda connection, name=other.name: tasks.load(connection, name).title  # type: ignore[misc]  # a default keeps the loop's value
        )
        subject = (
            f"Bring in {other.name}, which {task_id} builds on: {' '.join(title.split())[:60]}"
        )
        result = await merge_revision(place, chain, revision, f"{subject}\n")
        if result.conflicts:
            await store.write(
                lambda tx, name=other.name, result=result: _note_conflict(  # type: ignore[misc]  # as above
                    tx, task_id, name, chain, result
                )
            )


def _dependency_worktrees(connection: sqlite3.Connection, task_id: str) -> list[Worktree]:
    """Return the worktrees of the task's dependencies.

    A dependency's branch contains its own dependencies; one without merged work is replaced by its own.
    """
    seen, queue, merged_worktrees = {task_id}, [task_id], []
    while queue:
        for dependency in dependencies.select_prerequisites(connection, queue.pop()):
            other_id = dependency.depends_on_task_id
            if dependency.dependency_type == "relates_to" or other_id in seen:
                continue
            seen.add(other_id)
            worktree = worktrees.find(connection, other_id)
            if worktree is None or worktree.merged_commit is None:
                queue.append(other_id)
            else:
                merged_worktrees.append(worktree)
    return merged_worktrees


async def _revision(place: ProjectPaths, worktree: Worktree) -> str | None:
    """Return a name of the task's work: its branch, or its merge commit where the branch is gone."""
    for name in (f"refs/heads/{worktree.branch}", worktree.merged_commit):
        if name is not None and await commit_of(place.home, name) is not None:
            return name
    return None


def _note_conflict(
    tx: Tx, task_id: str, other_id: str, chain: Worktree, result: MergeResult
) -> None:
    files = ", ".join(result.conflicts[:10])
    text = (
        f"cockpit could not merge {other_id}, which this task depends on, into {chain.branch}: both"
        f" changed {files}. The task continues with the branch as it is."
    )
    service.add_activity(tx, task_id, "note", text, by=_BY)
