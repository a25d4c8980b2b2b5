"""The branch of a chain, a task or a session: its commits, its files and what a merge would come to.

Nothing is changed. See ``docs/reference/chains.md``, the branch of a chain.
"""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from cockpit.access.git_folders import describe_missing_checkout, locate_git_folders, read_head
from cockpit.act.proposed_action import FileDiff, draw_diff
from cockpit.core.errors import NotFound
from cockpit.core.project_paths import ProjectPaths
from cockpit.core.secrets import mask
from cockpit.store.chains import chains, worktrees
from cockpit.store.chains.worktrees import Worktree
from cockpit.store.db.database import Store
from cockpit.store.sessions import sessions
from cockpit.tasks.agent_changes.moved_branch import find_lost_tasks
from cockpit.tasks.agent_changes.propose_change import INTO, WORKTREE, find_worktree
from cockpit.tasks.agent_changes.read_change import (
    WorktreeChange,
    compare_trees,
    read_change,
    require_on_branch,
    snapshot_tree,
    tree_of,
)
from cockpit.tasks.git import (
    WorktreeError,
    commit_of,
    git,
    try_git,
    uncommitted_files,
    worktree_lock,
)
from cockpit.tasks.worktree import worktree_name

_MOST_COMMITS = 500
_MOST_CONFLICTS = 20
"""Files in conflict whose two sides are drawn."""


class Commit(Struct, frozen=True):
    """One commit of a branch."""

    sha: str
    at: str
    """When it was made, as git prints it in ISO form."""
    author: str
    subject: str


class Branch(Struct, frozen=True):
    """Whose work is shown, and where it would go."""

    name: str
    """``ch-3``, ``T-42`` or a session's id."""
    tree: Worktree | None
    """Its worktree; None for a session in the checkout."""
    into: str
    """The branch that it would be merged into, as a full reference; '' for none."""
    began: str
    """The commit that it began at; '' for the checkout."""
    runs: bool
    """Whether its chain or its task is in progress."""


class BranchChange(Struct, frozen=True):
    """What a branch has that its target has not."""

    branch: Branch
    change: WorktreeChange | None
    """None where nothing differs."""
    commits: tuple[Commit, ...]
    sides: tuple[FileDiff, ...]
    """The files in conflict: as the target has them, and as the branch has them."""
    solving: bool = False
    """Whether a merge that solves them has begun in the worktree."""


async def find_branch(store: Store, place: ProjectPaths, name: str) -> Branch:
    """Return the branch of ``name``: a chain, a task, or a session.

    Raises :class:`NotFound` and :class:`WorktreeError`, with text for the user.
    """
    if not place.git:
        raise WorktreeError(
            describe_missing_checkout(
                place.root,
                "only a repository has branches",
                "Run `git init` and make a first commit.",
            )
        )
    return await store.read(lambda connection: _find(connection, place, name.strip()))


def _find(connection: sqlite3.Connection, place: ProjectPaths, name: str) -> Branch:
    # Of this checkout: that of another worktree of the repository may be on another branch.
    folders = locate_git_folders(place.root)
    head = (None if folders is None else read_head(folders)) or ""
    if name.startswith("ch-"):
        chain = chains.load(connection, name)
        tree = worktrees.find(connection, worktree_name(chain.branch))
        if tree is None:
            raise WorktreeError(f"{name} has no branch yet: it has merged nothing.")
        into = f"refs/heads/{chain.base_branch}" if chain.base_branch else head
        return Branch(name, tree, into, chain.base_commit, chain.status in chains.OPEN)
    if name.startswith("T-"):
        tree = worktrees.find(connection, name)
        if tree is None:
            raise WorktreeError(f"{name} has no branch: no chain has worked on it.")
        return _of_task(connection, name, tree, head)
    session = sessions.load(connection, name)
    if session.target.get(WORKTREE):
        tree = worktrees.load(connection, str(session.target[WORKTREE]))
        return Branch(name, tree, str(session.target.get(INTO, "")), tree.base_commit, False)
    tree = find_worktree(connection, session.cwd)
    if tree is not None:
        return Branch(name, tree, str(session.target.get(INTO, "")), tree.base_commit, False)
    if session.task_id and (tree := worktrees.find(connection, session.task_id)) is not None:
        return _of_task(connection, session.task_id, tree, head)
    return Branch(name, None, "", "", False)


def _of_task(connection: sqlite3.Connection, name: str, tree: Worktree, head: str) -> Branch:
    into = head
    try:
        chain = chains.load(connection, tree.chain_id)
        into = f"refs/heads/{chain.branch}" if tree.status != "conflict" else into
    except NotFound:
        into = head
    return Branch(name, tree, into, tree.base_commit, tree.status == "active")


async def read_branch(store: Store, place: ProjectPaths, name: str) -> BranchChange:
    """Read the branch of a chain, a task or a session. Raises what :func:`find_branch` raises."""
    branch = await find_branch(store, place, name)
    tree = branch.tree
    if tree is None:
        return await _read_checkout(place, branch)
    if tree.status in ("merged", "removed") and tree.merged_commit and tree.task_id:
        return await _read_merged(place, branch, tree.merged_commit)
    is_checked_out = (Path(tree.path) / ".git").exists()
    root = Path(tree.path) if is_checked_out else place.home
    change = await read_change(
        root, tree.branch, branch.into, branch.began, is_checked_out=is_checked_out
    )
    if change is None:
        return BranchChange(branch, None, (), ())
    if tree.task_id is None and name.startswith("ch-"):
        chain = await store.read(lambda connection: chains.load(connection, tree.chain_id))
        lost = await find_lost_tasks(store, place, chain)
        notes = (*(f"{each.describe()}." for each in lost), *change.notes)
        change = replace(change, notes=notes)
    commits = await _list_commits(root, change.fork, change.tip)
    sides = await _read_sides(root, change) if change.conflicts else ()
    solving = is_checked_out and await is_solving(root)
    return BranchChange(branch, change, commits, sides, solving)


async def is_solving(root: Path) -> bool:
    """Return whether a merge has begun in the worktree at ``root`` and waits for its end."""
    ended = await try_git(root, "rev-parse", "--verify", "--quiet", "MERGE_HEAD")
    return ended.ok


async def _read_checkout(place: ProjectPaths, branch: Branch) -> BranchChange:
    """What is not committed in the user's checkout."""
    tip = await commit_of(place.root, "HEAD")
    if tip is None:
        raise WorktreeError(
            "This repository has no commit yet, so nothing can be compared with it."
        )
    tree, uncommitted = await snapshot_tree(place.root, tip)
    change = await compare_trees(place.root, tip, tip, tree, uncommitted)
    return BranchChange(branch, change, (), ())


async def _read_merged(place: ProjectPaths, branch: Branch, merged: str) -> BranchChange:
    """What a task's merge brought into its chain."""
    parents = (await git(place.home, "rev-list", "--parents", "-n1", merged)).split()[1:]
    fork = parents[0] if parents else branch.began
    change = await compare_trees(place.home, fork, merged, await tree_of(place.home, merged), ())
    return BranchChange(branch, change, await _list_commits(place.home, fork, merged), ())


async def _list_commits(root: Path, fork: str, tip: str) -> tuple[Commit, ...]:
    words = (
        "log",
        "--no-show-signature",
        f"--max-count={_MOST_COMMITS}",
        "--format=%h%x00%aI%x00%an%x00%s",
    )
    listed = await git(root, *words, f"{fork}..{tip}")
    rows = (line.split("\0") for line in listed.splitlines())
    return tuple(
        Commit(row[0], row[1], mask(row[2]), mask(row[3])) for row in rows if len(row) == 4
    )


async def _read_sides(root: Path, change: WorktreeChange) -> tuple[FileDiff, ...]:
    sides = []
    for path in change.conflicts[:_MOST_CONFLICTS]:
        ours = await _read_text(root, change.base, path)
        theirs = await _read_text(root, change.tip, path)
        diff, _ = draw_diff(path, ours, theirs)
        sides.append(diff)
    return tuple(sides)


async def _read_text(root: Path, commit: str, path: str) -> str | None:
    ended = await try_git(root, "cat-file", "blob", f"{commit}:{path}")
    if not ended.ok or b"\0" in ended.stdout:
        return None
    return ended.text


_MARKERS = (b"<<<<<<< ", b">>>>>>> ")
_MOST_NAMES = 5


async def begin_solving(store: Store, place: ProjectPaths, name: str) -> tuple[str, ...]:
    """Merge the target into the branch of ``name``, in its worktree; returns the files with markers in them.

    Raises :class:`WorktreeError`; then nothing is changed.
    """
    root, into, branch = await _find_solvable(store, place, name)
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
    root, into, branch = await _find_solvable(store, place, name)
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
    root, _, branch = await _find_solvable(store, place, name)
    async with worktree_lock(place):
        await require_on_branch(root, branch)
        if await is_solving(root):
            await git(root, "merge", "--abort")


async def _find_solvable(store: Store, place: ProjectPaths, name: str) -> tuple[Path, str, str]:
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
