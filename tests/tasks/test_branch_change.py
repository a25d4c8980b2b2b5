"""The branch of a chain: read with its conflicts, merged or dropped by a proposal, in a real repository."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from chains.new_chain import create_chain_row
from tasks.taskrun_world import git, repository

from cockpit.backlog.service import create_task
from cockpit.config.load_settings import load_settings
from cockpit.core.project_paths import locate_project
from cockpit.loop.runtime import Runtime, open_runtime
from cockpit.store.chains import chains, worktrees
from cockpit.store.sessions import proposals, sessions
from cockpit.store.sessions.proposals import Proposal
from cockpit.tasks.agent_changes.branch_change import (
    abort_solving,
    begin_solving,
    finish_solving,
    read_branch,
)
from cockpit.tasks.git import WorktreeError
from cockpit.tasks.worktree import ensure_chain_worktree, ensure_task_worktree, remove_tree

pytestmark = pytest.mark.slow


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncIterator[Runtime]:
    place = locate_project(repository(tmp_path))
    settings = load_settings(place.folder, env={}).runtime
    async with open_runtime(place, settings) as opened:
        yield opened


async def chain(runtime: Runtime, *, ends: bool = True) -> Path:
    """A chain that changed ``calc.py`` and committed it; returns its worktree."""
    root, store = runtime.place.root, runtime.store
    begun = await store.write(
        lambda tx: create_chain_row(tx, base_commit=git(root, "rev-parse", "HEAD"))
    )
    tree = await ensure_chain_worktree(store, runtime.place, begun.branch, chain_id=begun.chain_id)
    work = Path(tree.path)
    (work / "calc.py").write_text("def add(a, b):\n    return a + b\n", encoding="utf-8")
    git(work, "commit", "--quiet", "-am", "Add, do not subtract")
    if ends:
        await store.write(
            lambda tx: chains.end(tx, begun.chain_id, "completed", "the queue is empty")
        )
    return work


def pending(runtime: Runtime) -> Proposal:
    (shown,) = runtime.store.read_now(proposals.select_pending)
    return shown


async def approve(runtime: Runtime, shown: Proposal) -> None:
    await runtime.approve(shown.proposal_id, shown_digest=shown.shown_digest)


async def test_a_chain_s_branch_is_read_and_merged_with_a_proposal(runtime: Runtime) -> None:
    root = runtime.place.root
    await chain(runtime)
    shown = await read_branch(runtime.store, runtime.place, "ch-1")
    assert shown.change is not None
    assert shown.change.paths == ("calc.py",)
    assert [commit.subject for commit in shown.commits] == ["Add, do not subtract"]
    assert (shown.branch.into, shown.change.conflicts) == ("refs/heads/main", ())
    session_id = await runtime.propose_branch("ch-1")
    assert await runtime.propose_branch("ch-1") == session_id
    assert pending(runtime).title.startswith("take cockpit/ch-1 into main: +")
    assert "a + b" not in (root / "calc.py").read_text(encoding="utf-8")
    await approve(runtime, pending(runtime))
    assert "a + b" in (root / "calc.py").read_text(encoding="utf-8")
    session = await runtime.store.read(lambda c: sessions.load(c, session_id))
    assert session.status == "completed"
    assert (await read_branch(runtime.store, runtime.place, "ch-1")).change is None
    with pytest.raises(WorktreeError, match="nothing that main does not have"):
        await runtime.propose_branch("ch-1")
    # From the merge's own session, as the screen follows it: what is merged can be tidied away.
    dropping = await runtime.propose_branch(session_id, drop=True)
    assert dropping != session_id
    assert await runtime.propose_branch("ch-1", drop=True) == dropping
    assert "All of its work is merged." in pending(runtime).body["notes"]
    shown = pending(runtime)
    await runtime.reject(shown.proposal_id, shown_digest=shown.shown_digest, reason="not yet")
    kept = await runtime.store.read(lambda c: sessions.load(c, dropping))
    assert kept.status == "completed"
    dropping = await runtime.propose_branch(session_id, drop=True)
    await approve(runtime, pending(runtime))
    assert git(root, "branch", "--list", "cockpit/ch-1") == ""
    assert git(root, "for-each-ref", "refs/cockpit/dropped") == "", "main has all of it"
    assert (await runtime.store.read(lambda c: worktrees.load(c, "ch-1"))).status == "removed"
    assert (await runtime.store.read(lambda c: sessions.load(c, dropping))).status == "completed"


async def test_a_conflict_shows_both_sides_and_merges_nothing_and_the_branch_can_be_dropped(
    runtime: Runtime,
) -> None:
    root = runtime.place.root
    await chain(runtime)
    (root / "calc.py").write_text("def add(a, b):\n    return sum((a, b))\n", encoding="utf-8")
    git(root, "commit", "--quiet", "-am", "Sum")
    before = git(root, "rev-parse", "HEAD")
    shown = await read_branch(runtime.store, runtime.place, "ch-1")
    assert shown.change is not None and shown.change.conflicts == ("calc.py",)
    (side,) = shown.sides
    assert "sum(" in (side.before or "") and "a + b" in (side.after or "")
    session_id = await runtime.propose_branch("ch-1")
    assert pending(runtime).title.endswith("· conflicts")
    with pytest.raises(WorktreeError, match="nothing was merged"):
        await approve(runtime, pending(runtime))
    assert git(root, "rev-parse", "HEAD") == before
    assert git(root, "status", "--porcelain", "--untracked-files=no") == ""
    assert await runtime.propose_branch("ch-1", drop=True) == session_id
    assert (pending(runtime).risk, pending(runtime).body["type"]) == ("high", "drop_worktree")
    await approve(runtime, pending(runtime))
    assert git(root, "branch", "--list", "cockpit/ch-1") == ""
    assert git(root, "log", "-1", "--format=%s", f"refs/cockpit/dropped/{session_id}") == (
        "Add, do not subtract"
    )
    tree = await runtime.store.read(lambda c: worktrees.load(c, "ch-1"))
    assert tree.status == "removed"


async def test_a_running_chain_and_a_checkout_are_refused(runtime: Runtime) -> None:
    await chain(runtime, ends=False)
    with pytest.raises(WorktreeError, match="in progress"):
        await runtime.propose_branch("ch-1")
    session_id = await runtime.start("look", model="offline")
    (runtime.place.root / "calc.py").write_text("mine\n", encoding="utf-8")
    shown = await read_branch(runtime.store, runtime.place, session_id)
    assert shown.change is not None
    assert shown.change.uncommitted == ("calc.py",)
    with pytest.raises(WorktreeError, match="works in your checkout"):
        await runtime.propose_branch(session_id)


async def test_conflicts_are_solved_in_the_worktree_and_can_be_taken_back(runtime: Runtime) -> None:
    root, store, place = runtime.place.root, runtime.store, runtime.place
    work = await chain(runtime)
    (root / "calc.py").write_text("def add(a, b):\n    return sum((a, b))\n", encoding="utf-8")
    git(root, "commit", "--quiet", "-am", "Sum")
    before = git(work, "rev-parse", "HEAD")
    assert await begin_solving(store, place, "ch-1") == ("calc.py",)
    await abort_solving(store, place, "ch-1")
    assert (git(work, "rev-parse", "HEAD"), git(work, "status", "--porcelain")) == (before, "")
    await begin_solving(store, place, "ch-1")
    with pytest.raises(WorktreeError, match=r"markers are left in calc\.py"):
        await finish_solving(store, place, "ch-1")
    (work / "calc.py").write_text("def add(a, b):\n    return b + a\n", encoding="utf-8")
    await finish_solving(store, place, "ch-1")
    shown = await read_branch(store, place, "ch-1")
    assert shown.change is not None and shown.change.conflicts == ()
    await runtime.propose_branch("ch-1")
    await approve(runtime, pending(runtime))
    assert "b + a" in (root / "calc.py").read_text(encoding="utf-8")


async def test_the_branch_of_a_merged_task_is_dropped_as_that_of_a_chain(runtime: Runtime) -> None:
    root, store, place = runtime.place.root, runtime.store, runtime.place
    work = await chain(runtime)
    store.write_now(lambda tx: create_task(tx, "Double", by="person"))
    tree = await ensure_task_worktree(
        store, place, "T-1", chain_id="ch-1", chain_branch="cockpit/ch-1"
    )
    task_work = Path(tree.path)
    (task_work / "double.py").write_text("def double(a):\n    return 2 * a\n", encoding="utf-8")
    git(task_work, "add", "double.py")
    git(task_work, "commit", "--quiet", "-m", "Double")
    git(work, "merge", "--quiet", "--no-ff", "-m", "Merge T-1", tree.branch)
    merged = git(work, "rev-parse", "HEAD")
    await remove_tree(place, task_work)
    await store.write(lambda tx: worktrees.set_status(tx, "T-1", "merged", merged_commit=merged))
    with pytest.raises(WorktreeError, match="T-1 is merged already, into cockpit/ch-1"):
        await runtime.propose_branch("T-1")
    session_id = await runtime.propose_branch("T-1", drop=True)
    assert await runtime.propose_branch("T-1", drop=True) == session_id
    assert "All of its work is merged." in pending(runtime).body["notes"]
    await approve(runtime, pending(runtime))
    assert git(root, "branch", "--list", tree.branch) == ""
    assert git(root, "for-each-ref", "refs/cockpit/dropped") == "", "the chain has all of it"
    shown = await read_branch(store, place, "T-1")
    assert shown.change is not None and shown.change.paths == ("double.py",)
