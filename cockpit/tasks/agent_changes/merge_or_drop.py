"""Take or drop a worktree, as the outbox does it: once, and told afterwards by what git has.

Taking merges in no checkout first, and then moves the branch on: a conflict is found before anything
changes, and git itself keeps the user's uncommitted work. See ``docs/reference/agents.md``, the change of
a worktree.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from cockpit.access.git_folders import locate_git_folders, read_head
from cockpit.access.run_program import Finished
from cockpit.act.adapters.adapter import Adapter, Found, Outcome, failed, succeeded
from cockpit.act.adapters.git_commit import keyed
from cockpit.act.workspace import Workspace
from cockpit.core.processes import is_process_alive
from cockpit.core.project_paths import ProjectPaths
from cockpit.core.read_record import convert
from cockpit.store.chains import worktrees
from cockpit.store.chains.worktrees import DROP, TAKE, Worktree
from cockpit.store.db.database import Store
from cockpit.store.sessions import sessions
from cockpit.tasks.agent_changes.propose_change import DROPPED, ChangePayload
from cockpit.tasks.agent_changes.read_change import (
    merge_trees,
    require_on_branch,
    snapshot_tree,
    tree_of,
)
from cockpit.tasks.git import (
    WorktreeError,
    commit_all,
    commit_of,
    git,
    is_ancestor,
    printable,
    try_git,
    worktree_lock,
)
from cockpit.tasks.worktree import find_checkout_of, remove_tree

_MOST_NAMES = 5
_MOST_KEPT = 1_000


def change_adapters(store: Store, place: ProjectPaths) -> Mapping[str, Adapter]:
    """Return the adapters of the two actions, for a dispatcher of this project."""
    return {TAKE: _TakeAdapter(store, place), DROP: _DropAdapter(store, place)}


class _ChangeAdapter(Struct):
    """What both adapters share: the store with the worktree's row, and the project."""

    store: Store
    place: ProjectPaths
    ends_when_cancelled: bool = False

    def _tree(self, change: ChangePayload) -> Worktree:
        return self.store.read_now(lambda connection: worktrees.load(connection, change.worktree))

    async def _commit_rest(self, root: Path, change: ChangePayload) -> None:
        """Commit what is not, with the agent as its author."""
        name = printable(change.agent).replace("<", "").replace(">", "").strip() or "agent"
        await commit_all(
            root,
            f"Work of {name} that it had not committed\n\nSession: {change.session}\n",
            author=f"{name} <{name.replace(' ', '-')}@cockpit.localhost>",
        )


class _TakeAdapter(_ChangeAdapter):
    """Performs ``take_worktree``."""

    async def perform(self, payload: Mapping[str, Any], key: str, ground: Workspace) -> Outcome:
        """Merge, if worktree and branches are those that were shown (else conflict)."""
        change = convert(payload, ChangePayload)
        name = change.into.removeprefix("refs/heads/")
        tree = self._tree(change)
        root = Path(tree.path)
        async with worktree_lock(self.place):
            await require_on_branch(root, change.branch)
            base = await commit_of(self.place.home, change.into) if change.into else None
            if base is None:
                return failed(
                    "permanent",
                    f"There is no branch {name or 'that the worktree began from'}; nothing was merged."
                    f" Merge {change.branch} yourself.",
                )
            if base != change.base:
                return failed(
                    "conflict",
                    f"{name} moved from {change.base[:10]} to {base[:10]} since it was shown; nothing was"
                    " merged.",
                )
            if await self._tip_as_shown(root, change) is None:
                return failed(
                    "conflict",
                    f"{change.agent} changed {change.branch} since it was shown; nothing was merged.",
                )
            await self._commit_rest(root, change)
            tip = await commit_of(root, f"refs/heads/{change.branch}")
            if tip is None or await tree_of(root, tip) != change.tree:
                return failed(
                    "conflict",
                    f"{change.branch} changed while it was committed; nothing was merged.",
                )
            merged = await merge_trees(root, base, tip, change.tree)
            if merged.conflicts:
                shown = ", ".join(merged.conflicts[:_MOST_NAMES])
                return failed(
                    "permanent",
                    f"{change.branch} conflicts with {name} in {shown}; nothing was merged. Discuss the"
                    " proposal: the agent can merge it into its branch and solve them.",
                )
            target = tip
            if not await is_ancestor(root, base, tip):
                message = keyed(f"Merge {change.branch}, the work of {change.agent}", key)
                words = ("commit-tree", merged.tree, "-p", base, "-p", tip, "-F", "-")
                target = (await git(root, *words, stdin=printable(message).encode())).strip()
            problem = await self._move_on(name, base, target)
            if problem:
                return failed("permanent", problem)
        await self.store.write(
            lambda tx: worktrees.set_status(tx, tree.name, "merged", merged_commit=target)
        )
        return succeeded(f"{change.branch} is merged into {name} as {target[:10]}.", commit=target)

    async def probe(self, payload: Mapping[str, Any], key: str, ground: Workspace) -> Found:
        """Whether the branch has the work that was shown."""
        change = convert(payload, ChangePayload)
        if not change.into or await commit_of(self.place.home, change.into) is None:
            return "not_done"
        tip = await commit_of(self.place.home, f"refs/heads/{change.branch}") or change.tip
        for commit in (tip, change.tip):
            if await tree_of(self.place.home, commit) == change.tree and await is_ancestor(
                self.place.home, commit, change.into
            ):
                await self._record_merge(change, commit)
                return "done"
        return "not_done"

    async def _record_merge(self, change: ChangePayload, commit: str) -> None:
        """Record the merge of a process that ended between it and its record."""
        if self._tree(change).status == "active":
            await self.store.write(
                lambda tx: worktrees.set_status(tx, change.worktree, "merged", merged_commit=commit)
            )

    async def _tip_as_shown(self, root: Path, change: ChangePayload) -> str | None:
        """Return the branch's commit if its work is what was shown; also after a commit of ours."""
        tip = await commit_of(root, f"refs/heads/{change.branch}")
        if tip is None:
            return None
        tree, _ = await snapshot_tree(root, tip)
        if tree != change.tree:
            return None
        if tip != change.tip:
            # A crash after our own commit: it lies directly on what was shown.
            above = await try_git(root, "rev-parse", "--verify", "--quiet", f"{tip}^1")
            if above.text.strip() != change.tip:
                return None
        return tip

    async def _move_on(self, name: str, base: str, target: str) -> str:
        """Move the branch ``name`` from ``base`` on to ``target``; '' or why it could not be."""
        checkout = await find_checkout_of(self.place, name)
        if checkout is None:
            words = ("update-ref", "-m", "cockpit: take", f"refs/heads/{name}", target, base)
            ended = await try_git(self.place.home, *words)
            return "" if ended.ok else f"{name} could not be moved: {ended.reason}"
        folders = await asyncio.to_thread(locate_git_folders, checkout)
        head = None if folders is None else await asyncio.to_thread(read_head, folders)
        if head != f"refs/heads/{name}":
            return f"{checkout} was switched to another branch meanwhile; nothing was merged."
        ended = await try_git(
            checkout, "merge", "--ff-only", "--no-autostash", "--no-verify-signatures", "-q", target
        )
        return "" if ended.ok else _explain_refusal(ended, name, checkout)


def _explain_refusal(ended: Finished, name: str, checkout: Path) -> str:
    lines = ended.error_text.splitlines()
    files = [line.strip() for line in lines if line.startswith("\t")]
    if files:
        shown = ", ".join(files[:_MOST_NAMES])
        return (
            f"Your own uncommitted changes in {checkout} are in the way ({shown}); nothing was merged."
            " Commit or stash them, then approve it again."
        )
    return f"{name} could not be moved in {checkout}: {ended.reason}. Nothing was merged."


class _DropAdapter(_ChangeAdapter):
    """Performs ``drop_worktree``."""

    async def perform(self, payload: Mapping[str, Any], key: str, ground: Workspace) -> Outcome:
        """Keep what is merged nowhere under a reference, then remove worktree and branch."""
        change = convert(payload, ChangePayload)
        tree = self._tree(change)
        root = Path(tree.path)
        session = self.store.read_now(lambda c: sessions.load(c, change.session))
        if session.pid and is_process_alive(session.pid):
            return failed(
                "permanent",
                f"{change.agent} still runs in {root}; nothing was removed. End its session first.",
            )
        async with worktree_lock(self.place):
            if await asyncio.to_thread(os.path.lexists, root):
                await require_on_branch(root, change.branch)
                tip = await commit_of(root, f"refs/heads/{change.branch}")
                if tip is None or (await snapshot_tree(root, tip))[0] != change.tree:
                    return failed(
                        "conflict",
                        f"{change.agent} changed {change.branch} since it was shown; nothing was removed.",
                    )
                await self._commit_rest(root, change)
            tip = await commit_of(self.place.home, f"refs/heads/{change.branch}")
            kept = await self._find_kept(change) if tip is None else await self._keep(change, tip)
            await remove_tree(self.place, root)
            if tip is not None:
                await git(self.place.home, "branch", "--quiet", "-D", "--", change.branch)
        await self.store.write(lambda tx: worktrees.set_status(tx, tree.name, "removed"))
        words = f"The worktree and the branch {change.branch} are removed."
        if kept:
            words += f" The work is kept: `git branch NAME {kept}` brings it back."
        return succeeded(words, kept=kept)

    async def probe(self, payload: Mapping[str, Any], key: str, ground: Workspace) -> Found:
        """Whether worktree and branch are gone, and recorded so."""
        change = convert(payload, ChangePayload)
        if self._tree(change).status != "removed":
            return "not_done"  # doing it again does what is left of it
        branch = await commit_of(self.place.home, f"refs/heads/{change.branch}")
        there = await asyncio.to_thread(os.path.lexists, self._tree(change).path)
        return "not_done" if there or branch is not None else "done"

    async def _find_kept(self, change: ChangePayload) -> str:
        """Return the reference under which the work was kept before the branch was removed; '' for none."""
        pattern = f"{DROPPED}{change.session}*"
        listed = await git(self.place.home, "for-each-ref", "--format=%(refname) %(tree)", pattern)
        names = [line.split()[0] for line in listed.splitlines() if line.endswith(change.tree)]
        return names[-1] if names else ""

    async def _keep(self, change: ChangePayload, tip: str) -> str:
        """Name ``tip`` where nothing else does; returns the reference, '' for work that is merged."""
        home = self.place.home
        if change.into and await is_ancestor(home, tip, change.into):
            return ""
        for number in range(1, _MOST_KEPT):
            name = f"{DROPPED}{change.session}" + (f"-{number}" if number > 1 else "")
            there = await try_git(home, "rev-parse", "--verify", "--quiet", name)
            if there.ok and there.text.strip() == tip:
                return name
            if not there.ok:
                await git(home, "update-ref", "-m", "cockpit: drop", name, tip, "0" * len(tip))
                return name
        raise WorktreeError(
            f"All names from {DROPPED}{change.session} on are taken; remove some with `git update-ref -d`."
        )
