"""What a task builds on: done in another chain, it is brought into this one's branch before the task begins.

A task is done when it is merged into the branch of the chain that did it. Whoever does the next one may
stand on another branch: an earlier chain's work that nobody took yet, or that of one that runs beside.
Source: design of work, "Backlog" and "Doing a task".
"""

from __future__ import annotations

import sqlite3

from cockpit.backlog import service
from cockpit.core.project_paths import ProjectPaths
from cockpit.store.backlog import dependencies, tasks
from cockpit.store.chains import worktrees
from cockpit.store.chains.worktrees import Worktree
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.tasks.git import commit_of
from cockpit.tasks.merging import MergeResult, merge_revision

_BY = "engine"
_BEGUN = ("active", "conflict", "kept")


async def merge_prerequisites(
    store: Store, place: ProjectPaths, chain: Worktree, task_id: str
) -> None:
    """Merge into ``chain``'s branch the work of all that ``task_id`` waited for and that is not in there.

    A task that has its tree began already. What cannot be merged is left out and noted with the task: it
    may well be there in other commits, taken by a person as one. Raises ``WorktreeTrouble``.
    """
    known = store.read_now(lambda found: worktrees.find(found, task_id))
    if known is not None and known.status in _BEGUN:
        return
    for tree in store.read_now(lambda found: _before(found, task_id)):
        revision = await _revision(place, tree)
        if revision is None:
            continue
        title = store.read_now(lambda found, name=tree.name: tasks.load(found, name).title)  # type: ignore[misc]  # a default keeps the loop's value
        subject = f"Bring in {tree.name}, which {task_id} builds on: {' '.join(title.split())[:60]}"
        merged = await merge_revision(place, chain, revision, f"{subject}\n")
        if merged.conflicts:
            await store.write(
                lambda tx, name=tree.name, merged=merged: _note(tx, task_id, name, chain, merged)  # type: ignore[misc]  # as above
            )


def _before(connection: sqlite3.Connection, task_id: str) -> list[Worktree]:
    """The trees of the tasks that it waited for. One of them holds what it waited for itself; where one
    has none, those behind it count."""
    seen, left, found = {task_id}, [task_id], []
    while left:
        for one in dependencies.select_prerequisites(connection, left.pop()):
            other = one.depends_on_task_id
            if one.dependency_type == "relates_to" or other in seen:
                continue
            seen.add(other)
            tree = worktrees.find(connection, other)
            if tree is None or tree.merged_commit is None:
                left.append(other)
            else:
                found.append(tree)
    return found


async def _revision(place: ProjectPaths, tree: Worktree) -> str | None:
    """What names the task's work: its branch, or the merge of it where that was cleaned away."""
    for name in (f"refs/heads/{tree.branch}", tree.merged_commit):
        if name is not None and await commit_of(place.home, name) is not None:
            return name
    return None


def _note(tx: Tx, task_id: str, other: str, chain: Worktree, merged: MergeResult) -> None:
    listed = ", ".join(merged.conflicts[:10])
    words = (
        f"{other}, which this builds on, is not merged into {chain.branch}: {listed} changed in both. "
        "It is gone on with as it is there."
    )
    service.add_activity(tx, task_id, "note", words, by=_BY)
