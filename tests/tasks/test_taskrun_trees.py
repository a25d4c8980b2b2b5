"""Working trees in real repositories, in every state that a crash or a person leaves them in."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from chains.new_chain import create_chain_row
from tasks.taskrun_world import AT_ONCE, BRANCH, World, finish, git

from cockpit.act.adapters.run_command import CommandAdapter
from cockpit.act.workspace import open_workspace
from cockpit.core.project_paths import locate_project
from cockpit.store.chains import chains
from cockpit.store.chains.worktrees import Worktree
from cockpit.tasks.git import WorktreeError, commit_all
from cockpit.tasks.test_protection import restore_tests
from cockpit.tasks.worktree import (
    clean_worktrees,
    ensure_chain_worktree,
    ensure_task_worktree,
    head_commit,
    remove_worktree,
    unmerged_branches,
)

pytestmark = pytest.mark.slow


async def tree_of(world: World, task_id: str) -> Worktree:
    await ensure_chain_worktree(world.store, world.place, BRANCH, chain_id="ch-1")
    return await ensure_task_worktree(
        world.store, world.place, task_id, chain_id="ch-1", chain_branch=BRANCH
    )


async def test_it_is_made_once_and_found_again(world: World) -> None:
    task_id = world.task()
    made = await tree_of(world, task_id)
    assert (made.branch, Path(made.path).name) == (f"cockpit/{task_id}", task_id)
    assert locate_project(Path(made.path)).home == world.root
    (Path(made.path) / "calc.py").write_text("changed", encoding="utf-8")
    again = await tree_of(world, task_id)
    assert again == made
    assert (Path(made.path) / "calc.py").read_text(encoding="utf-8") == "changed"


async def test_what_is_in_the_way_is_kept(world: World) -> None:
    """A branch of its name, and files in its folder; it begins from a detached head."""
    task_id = world.task()
    git(world.root, "branch", f"cockpit/{task_id}")
    git(world.root, "checkout", "--quiet", "--detach")
    path = world.place.state / "worktrees" / task_id
    path.mkdir(parents=True)
    (path / "mine.txt").write_text("somebody's", encoding="utf-8")
    made = await tree_of(world, task_id)
    assert made.branch == f"cockpit/{task_id}-2"
    assert made.base_commit == git(world.root, "rev-parse", "HEAD")
    aside = path.with_name(f"{task_id}.left-1")
    assert (aside / "mine.txt").read_text(encoding="utf-8") == "somebody's"


async def test_a_tree_that_was_deleted_is_made_again_from_its_branch(world: World) -> None:
    task_id = world.task()
    made = await tree_of(world, task_id)
    (Path(made.path) / "new.py").write_text("x = 1\n", encoding="utf-8")
    assert await commit_all(Path(made.path), "new") == ("new.py",)
    shutil.rmtree(made.path)
    again = await tree_of(world, task_id)
    assert (Path(again.path) / "new.py").exists()
    assert again.branch == made.branch


def killed_while_made(world: World, path: Path, steps: int) -> None:
    """Leave what a process leaves that dies after so many steps of making a worktree."""
    own = world.root / ".git" / "worktrees" / path.name
    for step, (file, text) in enumerate(
        [
            (path / ".git", f"gitdir: {own}\n"),
            (own / "gitdir", f"{path}/.git\n"),
            (own / "HEAD", f"ref: refs/heads/cockpit/{path.name}\n"),
            (own / "commondir", "../..\n"),
            (own / "index.lock", ""),
            (path / "calc.py", "half of it"),
        ]
    ):
        if step < steps:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("steps", [1, 4, 6])
async def test_one_that_was_never_finished_is_made_anew(world: World, steps: int) -> None:
    task_id = world.task()
    await ensure_chain_worktree(world.store, world.place, BRANCH, chain_id="ch-1")
    killed_while_made(world, world.place.state / "worktrees" / task_id, steps)
    made = await tree_of(world, task_id)
    root = Path(made.path)
    assert git(root, "rev-parse", "--symbolic-full-name", "HEAD") == f"refs/heads/{made.branch}"
    assert git(root, "rev-parse", "HEAD") == made.base_commit
    assert git(root, "status", "--porcelain") == ""
    assert git(world.root, "worktree", "list").count("\n") == 2
    git(world.root, "fsck", "--no-dangling")


@pytest.mark.parametrize("left", ["state", "files"])
async def test_one_that_was_half_removed_is_removed(world: World, left: str) -> None:
    task_id = world.task()
    made = await tree_of(world, task_id)
    path, own = Path(made.path), world.root / ".git" / "worktrees" / task_id
    if left == "state":
        shutil.rmtree(path)
    else:
        (path / ".git").unlink()
    await remove_worktree(world.store, world.place, task_id)
    assert not path.exists()
    assert not own.exists()
    await remove_worktree(world.store, world.place, task_id)


async def test_a_checkout_that_was_cut_off_is_made_again(world: World) -> None:
    """Git locks a worktree until all of its files are written: a commit of it would remove them."""
    task_id = world.task()
    path = Path((await tree_of(world, task_id)).path)
    lock = world.root / ".git" / "worktrees" / path.name / "locked"
    lock.write_text("initializing", encoding="utf-8")
    (path / "calc.py").unlink()
    assert Path((await tree_of(world, task_id)).path) == path
    assert (path / "calc.py").exists() and not lock.exists()
    assert git(path, "status", "--porcelain") == ""


async def test_a_worktree_that_leads_elsewhere_takes_no_other_with_it(world: World) -> None:
    ids = [world.task() for _ in range(2)]
    first, second = [Path((await tree_of(world, task_id)).path) for task_id in ids]
    shutil.copyfile(second / ".git", first / ".git")
    await remove_worktree(world.store, world.place, ids[0])
    assert not first.exists() and (second / "calc.py").exists()
    assert git(second, "status", "--porcelain") == ""


async def test_a_commit_has_every_change_but_what_programs_leave_behind(world: World) -> None:
    """Also what a flag hides, what is staged as moved, and nothing of a cache."""
    root = Path((await tree_of(world, world.task())).path)
    for name in ("__pycache__/calc.pyc", "node_modules/a/index.js", "kept.txt"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x", encoding="utf-8")
    assert await commit_all(root, "kept") == ("kept.txt",)
    for text in ("first", "second"):
        git(root, "update-index", "--assume-unchanged", "calc.py")
        (root / "calc.py").write_text(text, encoding="utf-8")
        assert await commit_all(root, text) == ("calc.py",)
    git(root, "mv", "calc.py", "sums.py")
    assert await commit_all(root, "moved") == ("calc.py", "sums.py")
    assert git(root, "status", "--porcelain", "--untracked-files=no") == ""


async def test_a_branch_that_the_person_looks_at_is_not_taken_from_them(world: World) -> None:
    task_id = world.task()
    made = await tree_of(world, task_id)
    git(world.root, "worktree", "remove", "--force", made.path)
    git(world.root, "checkout", "--quiet", made.branch)
    with pytest.raises(WorktreeError, match="is checked out in"):
        await tree_of(world, task_id)


async def test_without_git_or_a_commit_it_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(WorktreeError, match="git init"):
        await head_commit(locate_project(tmp_path))
    git(tmp_path, "init", "--quiet")
    with pytest.raises(WorktreeError, match="no commit yet"):
        await head_commit(locate_project(tmp_path))


async def test_a_test_that_a_fixer_committed_is_taken_out_again(world: World) -> None:
    root = Path((await tree_of(world, world.task())).path)
    before = git(root, "rev-parse", "HEAD")
    (root / "conftest.py").write_text("collect_ignore = ['test_calc.py']\n", encoding="utf-8")
    git(root, "add", "conftest.py")
    git(root, "commit", "--quiet", "-m", "No tests")
    assert await restore_tests(root, before) == ("conftest.py",)
    assert await commit_all(root, "put back") == ("conftest.py",)
    assert git(root, "diff", "--name-only", before) == ""


async def test_hooks_signatures_and_a_missing_identity_stop_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = world.root / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    hook.chmod(0o755)
    git(world.root, "config", "--unset", "user.name")
    git(world.root, "config", "--unset", "user.email")
    git(world.root, "config", "user.useConfigOnly", "true")
    git(world.root, "config", "commit.gpgSign", "true")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    made = await tree_of(world, world.task())
    (Path(made.path) / "new.txt").write_text("x", encoding="utf-8")
    assert await commit_all(Path(made.path), "kept") == ("new.txt",)
    assert git(Path(made.path), "log", "-1", "--format=%an") == "cockpit"


async def test_clean_removes_what_is_merged_and_says_what_it_keeps(world: World) -> None:
    done, blocked, going = world.task("one"), world.task("two"), world.task("three")
    await world.do(AT_ONCE, done)
    stuck = finish("implementer", "I cannot.", status="blocked")
    assert (await world.do(stuck, blocked)).status == "blocked"
    await tree_of(world, going)
    (Path(world.tree(blocked).path) / "half.py").write_text("x", encoding="utf-8")

    cleaned = await clean_worktrees(world.store, world.place)
    assert cleaned.removed == (done,)
    kept = dict(cleaned.kept)
    assert set(kept) == {"ch-1", blocked, going}
    assert "uncommitted work" in kept[blocked]
    assert "git merge cockpit/ch-1" in kept["ch-1"]
    assert f"cockpit/{done}" not in git(world.root, "branch", "--list")
    assert world.show("calc.py").endswith("a + b")

    assert await unmerged_branches(world.store, world.place) == (BRANCH,), "a chain names it"
    git(world.root, "merge", "--quiet", BRANCH)
    assert await unmerged_branches(world.store, world.place) == ()
    cleaned = await clean_worktrees(world.store, world.place, everything=True)
    assert set(cleaned.removed) == {"ch-1", blocked}
    assert [name for name, _ in cleaned.kept] == [going]
    assert not Path(world.tree(blocked).path).exists()


async def test_the_tree_of_a_chain_that_runs_stays(world: World) -> None:
    made = world.store.write_now(create_chain_row)
    await ensure_chain_worktree(world.store, world.place, made.branch, chain_id=made.chain_id)
    for everything in (False, True):
        cleaned = await clean_worktrees(world.store, world.place, everything=everything)
        assert cleaned.removed == ()
        assert "ch-1 is running; `cockpit chain stop ch-1`" in dict(cleaned.kept)["ch-1"]
    world.store.write_now(lambda tx: chains.end(tx, "ch-1", "stopped", "drained"))
    assert (await clean_worktrees(world.store, world.place)).removed == ("ch-1",)


async def test_a_branch_that_was_deleted_is_made_again_while_its_commit_is_there(
    world: World,
) -> None:
    task_id, asked = world.task(), []

    def hands_over() -> bool:
        asked.append(1)
        return len(asked) == 2

    await world.do(AT_ONCE, task_id, must_hand_over=hands_over)
    tree = world.tree(task_id)
    git(world.root, "worktree", "remove", "--force", tree.path)
    git(world.root, "branch", "-D", tree.branch)
    asked.clear()
    assert (await world.do(AT_ONCE, task_id, must_hand_over=hands_over)).status == "interrupted"
    assert "a + b" in world.show("calc.py", tree.branch)
    git(world.root, "worktree", "remove", "--force", tree.path)
    git(world.root, "branch", "-D", tree.branch)
    git(world.root, "reflog", "expire", "--expire=now", "--all")
    git(world.root, "gc", "--quiet", "--prune=now")
    ended = await world.do(AT_ONCE, task_id)
    assert (ended.status, "was deleted" in ended.reason) == ("blocked", True)


async def test_what_runs_in_a_tree_moves_no_branch_of_the_person(world: World) -> None:
    made = await tree_of(world, world.task())
    ground = await open_workspace(Path(made.path), environment=dict(os.environ))
    head = git(world.root, "rev-parse", "main")
    other = git(world.root, "commit-tree", "-m", "other", f"{head}^{{tree}}")

    async def confined(*words: str) -> bool:
        payload = {"argv": words, "timeout_s": 60, "sandboxed": ground.sandbox.works}
        return (await CommandAdapter().perform(payload, "k", ground)).status == "success"

    assert await confined("git", "commit", "--quiet", "--allow-empty", "-m", "mine")
    assert git(world.root, "log", "-1", "--format=%s", made.branch) == "mine"
    for words in (("update-ref", "refs/heads/main", other), ("branch", "--force", "main", other)):
        moved = await confined("git", *words)
        assert moved != ground.sandbox.works or words[0] == "branch"
    assert not ground.sandbox.works or git(world.root, "rev-parse", "main") == head
