"""A chain's branch that the user moved after merges: which of its tasks are no longer on it.

See ``docs/reference/chains.md``, the report.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from msgspec import Struct

from cockpit.core.project_paths import ProjectPaths
from cockpit.store.chains.chains import Chain
from cockpit.store.db.database import Store
from cockpit.tasks.git import commit_of, try_git

_MERGED = (
    "SELECT task_id, merged_commit FROM worktrees WHERE chain_id=? AND task_id IS NOT NULL"
    " AND merged_commit IS NOT NULL ORDER BY created_at, name"
)


class LostTask(Struct, frozen=True):
    """A task that was merged into a branch that does not have it any more."""

    task_id: str
    commit: str
    """The merge that brought it in."""
    branch: str
    is_kept: bool
    """Whether the repository still has the commit."""

    def describe(self) -> str:
        """Return what happened and the way back, as a sentence without its end."""
        what = f"{self.task_id} was merged into {self.branch} and is no longer on it"
        if not self.is_kept:
            return f"{what}; git has removed its commit {self.commit[:10]}"
        return f"{what}; `git merge {self.commit[:10]}` there brings it back"


async def find_lost_tasks(store: Store, place: ProjectPaths, chain: Chain) -> tuple[LostTask, ...]:
    """Return the tasks that the chain merged and that its branch no longer has.

    A task whose change is there under other commits, as after a rebase, is on it. A branch that is gone has
    been taken or dropped: then nothing is said.
    """
    if not place.git:
        return ()

    def read(connection: sqlite3.Connection) -> dict[str, str]:
        return dict(connection.execute(_MERGED, (chain.chain_id,)).fetchall())

    merged = await store.read(read)
    tip = await commit_of(place.home, f"refs/heads/{chain.branch}")
    if not merged or tip is None:
        return ()
    root = place.home
    kept = await _select_existing(root, list(merged.values()))
    left = await try_git(root, "rev-list", "--stdin", f"^{tip}", stdin="\n".join(kept).encode())
    absent = set(left.text.split()) if left.ok else set()
    lost = [
        LostTask(task_id, commit, chain.branch, commit in kept)
        for task_id, commit in merged.items()
        if commit not in kept or (commit in absent and not await _has_change(root, tip, commit))
    ]
    return tuple(lost)


async def _select_existing(root: Path, commits: list[str]) -> frozenset[str]:
    listed = await try_git(
        root, "cat-file", "--batch-check=%(objectname)", stdin="\n".join(commits).encode()
    )
    return frozenset(line for line in listed.text.splitlines() if " " not in line)


async def _has_change(root: Path, tip: str, merge: str) -> bool:
    """Whether ``tip`` has every commit that a merge brought in, under whatever id."""
    brought = await try_git(root, "cherry", tip, f"{merge}^2", f"{merge}^1")
    lines = brought.text.splitlines()
    return brought.ok and bool(lines) and all(line.startswith("-") for line in lines)
