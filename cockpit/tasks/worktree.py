"""A branch and a worktree for each task, and one for the chain that tasks are merged into.

All worktrees are under ``worktrees`` of the project's state folder; the user's checkout, index, branch
and uncommitted work are never touched. Files that a crash left are reused or moved aside, never deleted.
See ``docs/reference/backlog.md``.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
from functools import partial
from pathlib import Path

from msgspec import Struct

from cockpit.access.git_folders import describe_missing_checkout, is_bare
from cockpit.core.errors import NotFound
from cockpit.core.processes import is_process_alive
from cockpit.core.project_paths import ProjectPaths
from cockpit.core.text import pluralize
from cockpit.loop.external_agent_interface import CHECKOUT, WORKTREE
from cockpit.loop.wave_context import Engine
from cockpit.store.chains import chains, worktrees
from cockpit.store.chains.worktrees import Worktree
from cockpit.store.db.database import Store
from cockpit.store.sessions import sessions
from cockpit.tasks.git import (
    WorktreeError,
    commit_of,
    git,
    is_ancestor,
    try_git,
    uncommitted_files,
    worktree_lock,
    worktrees_folder,
)

PREFIX = "cockpit/"
_OTHER_PREFIX = "cockpit-work/"
_MOST_NAMES = 200
_MOST_AGENTS = 1_000


class CleanupResult(Struct, frozen=True):
    """What :func:`clean_worktrees` did: names removed, and those kept with the reason."""

    removed: tuple[str, ...]
    kept: tuple[tuple[str, str], ...]


async def branch_prefix(place: ProjectPaths) -> str:
    """Return the start of the names of branches that cockpit makes in this repository.

    Git keeps no branch below another one: beside a branch of the user's that is called ``cockpit`` they
    have another start.
    """
    return _OTHER_PREFIX if await commit_of(place.home, "refs/heads/cockpit") else PREFIX


def worktree_name(branch: str) -> str:
    """Return the name of the worktree in which a branch of cockpit's is checked out."""
    return (branch.partition("/")[2] or branch).replace("/", "-")


async def ensure_task_worktree(
    store: Store,
    place: ProjectPaths,
    task_id: str,
    *,
    chain_id: str,
    chain_branch: str,
    tip: str = "",
) -> Worktree:
    """The task's own tree: the one that it has, or a new one from the tip of ``chain_branch``.

    ``tip`` is the last commit that is known of its branch: one that was deleted begins there again.

    Raises :class:`WorktreeError`.
    """
    async with worktree_lock(place):
        existing = store.read_now(lambda connection: worktrees.find(connection, task_id))
        if existing is not None and existing.status in ("active", "conflict", "kept"):
            await _check_out(place, existing, tip)
            return await store.write(lambda tx: worktrees.set_status(tx, task_id, "active"))
        base = await commit_of(place.home, f"refs/heads/{chain_branch}")
        if base is None:
            raise WorktreeError(f"There is no branch {chain_branch} to start {task_id} from.")
        branch = await _free_name(place, f"{await branch_prefix(place)}{task_id}")
        path = str(worktrees_folder(place) / task_id)
        worktree = await store.write(
            lambda tx: worktrees.register(
                tx,
                task_id,
                task_id=task_id,
                chain_id=chain_id,
                path=path,
                branch=branch,
                base_commit=base,
            )
        )
        await _check_out(place, worktree)
        return worktree


async def ensure_chain_worktree(
    store: Store, place: ProjectPaths, branch: str, *, chain_id: str = ""
) -> Worktree:
    """The tree in which ``branch`` is checked out and tasks are merged.

    The branch starts at the current commit of the user's checkout; their uncommitted work is
    not in it. A branch without a chain moves on to the user's current commit, if that contains it. Raises
    :class:`WorktreeError`.
    """
    name = worktree_name(branch)
    async with worktree_lock(place):
        existing = store.read_now(lambda connection: worktrees.find(connection, name))
        if existing is not None and existing.status == "active":
            await _check_out(place, existing)
            await _follow_head(place, existing, chain_id)
            return existing
        base = await commit_of(place.home, f"refs/heads/{branch}") or await head_commit(place)
        worktree = await store.write(
            lambda tx: worktrees.register(
                tx,
                name,
                task_id=None,
                chain_id=chain_id,
                path=str(worktrees_folder(place) / name),
                branch=branch,
                base_commit=base,
            )
        )
        await _check_out(place, worktree)
        await _follow_head(place, worktree, chain_id)
        return worktree


async def _follow_head(place: ProjectPaths, tree: Worktree, chain_id: str) -> None:
    """Move a branch without a chain on to the user's commit, where that contains it.

    A chain keeps its starting commit, whatever the user checks out while it runs.
    """
    if chain_id:
        return
    head = await head_commit(place)
    if await is_ancestor(place.home, f"refs/heads/{tree.branch}", head):
        await try_git(Path(tree.path), "merge", "--ff-only", "--quiet", head)


async def head_commit(place: ProjectPaths) -> str:
    """Return the current commit of the user's checkout, on a branch or detached.

    Raises :class:`WorktreeError` without git or without a commit.
    """
    if not place.git:
        raise WorktreeError(
            describe_missing_checkout(
                place.root, "tasks need branches", "Run `git init` and make a first commit."
            )
        )
    commit = await commit_of(place.root, "HEAD")
    if commit is None:
        raise WorktreeError(
            "This repository has no commit yet, and tasks start from one. Make a first commit."
        )
    return commit


async def unmerged_branches(store: Store, place: ProjectPaths) -> tuple[str, ...]:
    """Return the branches with merged tasks whose work is not in the user's branch.

    Raises :class:`WorktreeError` as :func:`head_commit`.
    """
    await head_commit(place)
    left = await git(
        place.root,
        "for-each-ref",
        "--no-merged=HEAD",
        "--format=%(refname) %(objectname)",
        f"refs/heads/{PREFIX}",
        f"refs/heads/{_OTHER_PREFIX}",
    )
    tips = dict(line.split(" ") for line in left.splitlines())
    return tuple(
        tree.branch
        for tree in store.read_now(worktrees.select)
        if tree.task_id is None
        and tips.get(f"refs/heads/{tree.branch}", tree.base_commit) != tree.base_commit
    )


async def remove_worktree(store: Store, place: ProjectPaths, name: str) -> None:
    """Remove the tree of ``name`` from the disk; its branch stays. Doing it twice is doing it once."""
    worktree = store.read_now(lambda connection: worktrees.load(connection, name))
    async with worktree_lock(place):
        await remove_tree(place, Path(worktree.path))


async def clean_worktrees(
    store: Store, place: ProjectPaths, *, everything: bool = False
) -> CleanupResult:
    """Remove trees and branches whose work is merged, and what is left of removed ones.

    ``everything`` removes the trees of blocked tasks and of chains as well, even with uncommitted
    work. A branch whose commits are merged nowhere stays in any case, and a task in progress and a
    chain that runs keep their trees.
    """
    removed, kept_names = [], []
    async with worktree_lock(place):
        for worktree in store.read_now(lambda connection: worktrees.select(connection)):
            why = "" if everything else await _why_kept(place, worktree)
            if worktree.status == "active" and worktree.task_id is not None:
                why = f"{worktree.task_id} is in progress in it"
            elif store.read_now(partial(_has_agent, worktree)):
                why = "an agent works in it; end its session first"
            elif worktree.task_id is None and store.read_now(partial(_runs, worktree)):
                why = f"{worktree.chain_id} is running; `cockpit chain stop {worktree.chain_id}` ends it"
            if why:
                kept_names.append((worktree.name, why))
                continue
            await remove_tree(place, Path(worktree.path))
            if await _merged_somewhere(place, worktree):
                await try_git(place.home, "branch", "--quiet", "-D", worktree.branch)
            await store.write(partial(worktrees.set_status, name=worktree.name, status="removed"))
            removed.append(worktree.name)
    return CleanupResult(tuple(removed), tuple(kept_names))


def _runs(tree: Worktree, connection: sqlite3.Connection) -> bool:
    """Whether the chain whose tree this is may merge into it at any time."""
    try:
        return chains.load(connection, tree.chain_id).status in chains.OPEN
    except NotFound:
        return False  # the tree of tasks that are done one by one


def _has_agent(tree: Worktree, connection: sqlite3.Connection) -> bool:
    """Whether the process of an external agent runs in the tree."""
    return any(
        session.pid and session.cwd == tree.path and is_process_alive(session.pid)
        for session in sessions.select_of_agents(connection, _MOST_AGENTS)
    )


async def _why_kept(place: ProjectPaths, tree: Worktree) -> str:
    """Why this tree is not removed without force; '' when nothing would be lost."""
    path = Path(tree.path)
    if (path / ".git").exists():
        dirty = await uncommitted_files(path)
        if dirty:
            return (
                f"it has uncommitted work ({pluralize(len(dirty), 'file')}: {', '.join(dirty[:3])})"
            )
    tip = await commit_of(place.home, f"refs/heads/{tree.branch}")
    if tree.task_id is None:
        if tip is None or await is_ancestor(place.home, tip, await head_commit(place)):
            return ""
        return (
            f"{tree.branch} is not merged into your branch; take it with `git merge {tree.branch}`"
        )
    if tree.status in ("conflict", "kept"):
        return "its work is merged nowhere"
    return ""


async def _merged_somewhere(place: ProjectPaths, tree: Worktree) -> bool:
    """Whether no commit is lost with the tree's branch."""
    named = f"refs/heads/{tree.branch}"
    listed = await try_git(
        place.home, "for-each-ref", "--format=%(refname)", "--contains", named, "refs/heads"
    )
    others = [name for name in listed.text.split() if name != named]
    return listed.ok and (bool(others) or await is_ancestor(place.home, named, "HEAD"))


async def _check_out(place: ProjectPaths, tree: Worktree, tip: str = "") -> None:
    """See that the tree is on the disk, on its branch; one that is gone is made again at ``tip``."""
    path = Path(tree.path)
    if await _is_checked_out(path, tree.branch):
        return
    elsewhere = await find_checkout_of(place, tree.branch)
    if elsewhere is not None and not _same(elsewhere, path):
        raise WorktreeError(
            f"The branch {tree.branch} of {tree.name} is checked out in {elsewhere}. Switch that "
            f"checkout to another branch (`git switch -`), then try again."
        )
    if os.path.lexists(path):  # noqa: ASYNC240 - one stat, of a worktree of ours
        await asyncio.to_thread(_move_aside, path)
    exists = await commit_of(place.home, f"refs/heads/{tree.branch}") is not None
    new = [] if exists else ["--no-track", "-b", tree.branch]
    if tip and not exists and await commit_of(place.home, tip) is None:
        raise WorktreeError(
            f"The branch {tree.branch} of {tree.name} was deleted, and its last commit {tip[:10]} with "
            f"it. `git branch {tree.branch} COMMIT` brings it back; then unblock the task."
        )
    start = tree.branch if exists else tip or tree.base_commit
    # Forced twice: git still lists the tree that a crash or the user removed from this very path, and keeps
    # one locked whose checkout was cut off.
    words = ("worktree", "add", "--quiet", "--force", "--force", *new)
    await git(place.home, *words, str(path), start)


async def _is_checked_out(path: Path, branch: str) -> bool:
    if not (path / ".git").is_file():
        return False
    question = ("--show-toplevel", "--symbolic-full-name", "HEAD", "--git-path", "locked")
    ended = await try_git(path, "rev-parse", *question)
    if not ended.ok:
        return False
    top, head, lock = ended.text.rstrip("\n").rsplit("\n", 2)
    # Git holds this lock until all files are written.
    cut_off = await asyncio.to_thread(_reads, path / lock, "initializing")
    return _same(Path(top), path) and head == f"refs/heads/{branch}" and not cut_off


def _reads(file: Path, text: str) -> bool:
    try:
        return file.read_text(encoding="utf-8", errors="replace").startswith(text)
    except OSError:
        return False


def _same(first: Path, second: Path) -> bool:
    return first.resolve() == second.resolve()


async def find_checkout_of(place: ProjectPaths, branch: str) -> Path | None:
    """Where ``branch`` is checked out now, if anywhere."""
    listed = await git(place.home, "worktree", "list", "--porcelain")
    for block in listed.split("\n\n"):
        lines = block.splitlines()
        if f"branch refs/heads/{branch}" in lines:
            path = Path(lines[0].removeprefix("worktree "))
            if is_bare(path):
                # Of a submodule git names the folder of its state, whose settings say where its files are.
                own = await try_git(place.home, "config", "--local", "--get", "core.worktree")
                path = (path / own.text.strip()).resolve()
            return path if await asyncio.to_thread(path.exists) else None
    return None


async def _free_name(place: ProjectPaths, branch: str) -> str:
    """Return ``branch``, or the first free name with a number after it."""
    for name in (branch, *(f"{branch}-{number}" for number in range(2, _MOST_NAMES))):
        if not await _is_branch(place, name):
            return name
    raise WorktreeError(
        f"All names from {branch} on are taken; remove old ones: `cockpit chain worktrees --clean`."
    )


async def _is_branch(place: ProjectPaths, name: str) -> bool:
    """Whether there is such a branch, whatever it names."""
    words = ("show-ref", "--verify", "--quiet", f"refs/heads/{name}")
    return (await try_git(place.home, *words)).ok


def _move_aside(path: Path) -> None:
    """Move files at ``path`` aside: without a worktree there, they may be the user's work."""
    if path.is_symlink():
        path.unlink(missing_ok=True)
        return
    if path.is_dir() and all(entry.name == ".git" for entry in path.iterdir()):
        shutil.rmtree(path)
        return
    number = 1
    while (aside := path.with_name(f"{path.name}.left-{number}")).exists():
        number += 1
    path.rename(aside)


async def remove_tree(place: ProjectPaths, path: Path) -> None:
    """Remove a worktree of cockpit from the disk, under the lock. Raises :class:`WorktreeError`."""
    if path.parent != worktrees_folder(place):
        raise WorktreeError(f"{path} is not a worktree of cockpit; it was left alone.")
    await try_git(place.home, "worktree", "remove", "--force", str(path))
    if await asyncio.to_thread(_delete_folder, path):
        await try_git(place.home, "worktree", "remove", "--force", str(path))


def _delete_folder(path: Path) -> bool:
    """Remove what git left or did not know; whether there was anything."""
    if not path.exists():
        return False
    shutil.rmtree(path)
    return True


async def choose_folder(engine: Engine, agent: str, where: str) -> Path | None:
    """Return a new worktree for the agent, or None for the checkout.

    ``where`` is ``worktree``, ``checkout``, or '' for the rule: the checkout is for one agent at a time,
    the second gets a worktree, unless the project is not a repository. Raises ``WorktreeError``.
    """
    place = engine.place
    if where != WORKTREE:
        root = str(place.root)
        is_taken = await engine.store.read(
            lambda connection: sessions.works_agent_in(connection, root, engine.store.clock.now())
        )
        if where == CHECKOUT or not is_taken or not place.git:
            return None
    name = engine.store.ids.new("w").removeprefix("w-")
    branch = f"{await branch_prefix(place)}{agent}-{name}"
    worktree = await ensure_chain_worktree(engine.store, place, branch, chain_id="")
    return Path(worktree.path)
