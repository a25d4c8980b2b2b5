"""Propose to merge, or to drop, the branch of a chain or a task: with two keys, as an agent's worktree.

The proposal belongs to a session of its own, whose target names the worktree. See
``docs/reference/chains.md``, the branch of a chain.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

from cockpit.access.git_folders import (
    GitFolders,
    list_checkouts,
    locate_git_folders,
    name_checkout,
    read_head,
)
from cockpit.core.project_paths import ProjectPaths
from cockpit.loop.wave_context import Engine
from cockpit.store.chains.worktrees import TAKE, TYPES, Worktree
from cockpit.store.context import profiles
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.sessions import SessionCompleted, SessionWaiting
from cockpit.store.sessions import messages, proposals, sessions
from cockpit.store.sessions.proposals import Proposal
from cockpit.tasks.agent_changes.branch_change import Branch, find_branch, is_solving
from cockpit.tasks.agent_changes.propose_change import (
    INTO,
    WORKTREE,
    create_proposal,
    describe_drop,
    propose_change,
    propose_removal,
    size_of,
)
from cockpit.tasks.git import WorktreeError
from cockpit.tasks.worktree import ensure_chain_worktree, ensure_task_worktree

_TASK_TYPE = "chore"


async def propose_branch(engine: Engine, name: str, *, drop: bool = False) -> str:
    """Propose to merge the branch of ``name``, or to drop it; returns the session of the proposal.

    A proposal that waits already stays as it is, unless something changed. Raises :class:`WorktreeError`
    for a branch that is in use, that nothing can be merged from, or that belongs to nobody.
    """
    branch = await find_branch(engine.store, engine.place, name)
    if branch.tree is None:
        raise WorktreeError(
            f"{name} works in your checkout: its changes are yours already. Commit them there."
        )
    if branch.runs:
        raise WorktreeError(f"{name} is in progress; wait for it, or stop it first.")
    is_merged = branch.tree.task_id is not None and branch.tree.status == "merged"
    if is_merged and not drop:
        raise WorktreeError(f"{branch.name} is merged already, into {_short(branch.into)}.")
    if not drop and (trouble := await asyncio.to_thread(why_not_into, engine.place, branch.into)):
        raise WorktreeError(f"{name} was not taken: {trouble}")
    tree = branch.tree if is_merged else await _check_out(engine, branch)
    if not is_merged and await is_solving(Path(tree.path)):
        raise WorktreeError(
            f"A merge that solves conflicts has begun in the worktree of {name}. In the branch's diff `s`"
            " commits it and `a` takes it back."
        )
    what = "drop" if drop else "merge"
    session_id = await engine.store.write(
        lambda tx: _ensure_session(tx, engine, branch, tree, what)
    )
    shown = None if is_merged else await propose_change(engine, session_id)
    if shown is None and drop:
        await propose_removal(engine, session_id)
        return session_id
    if shown is None:
        words = f"{tree.branch} has nothing that {_short(branch.into)} does not have."
        await engine.store.write(lambda tx: _close(tx, session_id, words))
        raise WorktreeError(f"{words} There is nothing to merge.")
    if drop and shown.body["type"] == TAKE:
        await engine.store.write(lambda tx: _ask_to_drop(tx, shown))
    return session_id


def why_not_into(place: ProjectPaths, into: str) -> str:
    """Return why nothing can be merged into a reference now, and what to do; '' where it can."""
    if not into.startswith("refs/heads/"):
        return (
            "your checkout is on no branch (a detached HEAD), and a branch is merged into one. Check one out"
            " (`git switch main`, or `git switch -c NAME` to keep this commit), and take it again."
        )
    folders = locate_git_folders(place.home)
    for each in [] if folders is None else list_checkouts(folders):
        if doing := _find_unfinished(each, into):
            top = name_checkout(each) or place.home
            return (
                f"a {doing} of {_short(into)} is in progress in {top}, and the branch"
                f" cannot move. Finish it (`git {doing} --continue` or `--abort`), and take it again."
            )
    return ""


def _find_unfinished(checkout: GitFolders, into: str) -> str:
    """Return what git has begun in a checkout with the branch ``into`` and not ended; '' for nothing."""
    own = Path(checkout.own)
    for kind in ("rebase-merge", "rebase-apply"):
        with suppress(OSError):
            if (own / kind / "head-name").read_text(encoding="utf-8").strip() == into:
                return "rebase"
    if read_head(checkout) != into:
        return ""
    signs = {"merge": "MERGE_HEAD", "cherry-pick": "CHERRY_PICK_HEAD"}
    return next((name for name, sign in signs.items() if (own / sign).exists()), "")


async def _check_out(engine: Engine, branch: Branch) -> Worktree:
    """Return the worktree, made again where it was removed and its branch is still there."""
    tree, store, place = branch.tree, engine.store, engine.place
    assert tree is not None  # noqa: S101 -- looked at by the caller
    if tree.task_id is not None:
        return await ensure_task_worktree(
            store, place, tree.task_id, chain_id=tree.chain_id, chain_branch=_short(branch.into)
        )
    return await ensure_chain_worktree(store, place, tree.branch, chain_id=tree.chain_id)


def _ensure_session(tx: Tx, engine: Engine, branch: Branch, tree: Worktree, what: str) -> str:
    """Return the session that asks about the worktree already, or a new one to ``what``: merge or drop."""
    for proposal in proposals.select_pending(tx.connection):
        if _is_about(proposal, tree) and proposal.session_id:
            return proposal.session_id
    if not branch.name.startswith(("ch-", "T-")) and not _has_asked(tx, branch.name):
        return branch.name  # an agent's own session
    title = f"{what} {tree.branch}"
    if what == "merge":
        title += f" into {_short(branch.into)}"
    session = sessions.create(
        tx,
        task_type=_TASK_TYPE,
        title=title,
        words=title,
        target={INTO: branch.into, WORKTREE: tree.name},
        model=engine.model(None).name,
        policy="ask",
        interactive=True,
        root=engine.place.root,
        rev=None,
        profile_id=profiles.ensure_default(tx, engine.settings.token_budget).profile_id,
        limits={},
        project=engine.repo or engine.place.root.name,
        branch=tree.branch,
    )
    waiting = SessionWaiting(for_="proposal", why=title)
    sessions.set_status(tx, session.session_id, "waiting", detail=waiting)
    return session.session_id


def _has_asked(tx: Tx, session_id: str) -> bool:
    """Whether a session was made to ask about a branch, and has its answer."""
    session = sessions.load(tx.connection, session_id)
    return WORKTREE in session.target and session.status == "completed"


def _is_about(proposal: Proposal, tree: Worktree) -> bool:
    body = proposal.body
    return body.get("type") in TYPES and body["payload"]["worktree"] == tree.name


def _ask_to_drop(tx: Tx, shown: Proposal) -> None:
    proposals.decide(tx, shown.proposal_id, "expired", by="engine", reason="dropped instead")
    title, body = describe_drop(shown.body, size_of(shown))
    create_proposal(tx, shown.session_id, title, body, "high", shown)


def _close(tx: Tx, session_id: str, words: str) -> None:
    session = sessions.load(tx.connection, session_id)
    if WORKTREE in session.target and session.status in ("running", "waiting"):
        messages.complete(tx, session_id=session_id, role="notice", text=words)
        ended = SessionCompleted(status="done", summary=words)
        sessions.set_status(tx, session_id, "completed", detail=ended)


def _short(reference: str) -> str:
    return reference.removeprefix("refs/heads/") or "your branch"
