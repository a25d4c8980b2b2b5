"""What comes out of a view of the repository: commits and the index, and nothing that runs later."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import pytest

from cockpit.act.adapters import ADAPTERS
from cockpit.act.adapters.adapter import Outcome
from cockpit.act.workspace import Workspace, open_workspace

pytestmark = pytest.mark.slow


async def run(ground: Workspace, script: str) -> Outcome:
    payload = {"argv": ["sh", "-c", script], "timeout_s": 60, "sandboxed": True}
    return await ADAPTERS["run"].perform(payload, "k", ground)


def git(root: Path, *words: str) -> str:
    ended = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def snapshot(root: Path) -> dict[str, bytes]:
    """Everything in ``.git`` that decides what git runs or reads."""
    git_folder = root / ".git"
    return {
        str(path.relative_to(git_folder)): path.read_bytes()
        for path in sorted(git_folder.rglob("*"))
        if path.is_file()
        and not path.relative_to(git_folder)
        .parts[0]
        .startswith(("objects", "logs", "index", "refs"))
    }


PLANTS = (
    "git config core.fsmonitor ./evil; git config alias.st '!./evil'; git config core.hooksPath evil",
    "printf '#!/bin/sh\\ntouch ran\\n' > .git/hooks/post-checkout; chmod +x .git/hooks/post-checkout",
    "mkdir e; echo ../e > .git/commondir; echo x > .git/gitdir; echo '[core]' > .git/config.worktree",
    "echo /etc > .git/objects/info/alternates; echo '* filter=evil' > .git/info/attributes",
    "mkdir -p .git/modules/x .git/worktrees/y .git/rebase-merge; echo 'exec ./evil' > .git/rebase-merge/todo",
    "ln -s /etc/passwd .git/refs/heads/led; echo x > .git/refs/heads/bad; echo y > .git/packed-refs.new",
    "ln -sf /etc/passwd .git/MERGE_MSG; ln -sf /etc/passwd .git/description",
)


async def test_nothing_that_is_planted_in_a_view_comes_out(ground: Workspace) -> None:
    root = ground.root
    before = snapshot(root)
    plants = "; ".join(PLANTS)
    outcome = await run(
        ground, f"echo x > file; git add file; git commit -qm Plain; ({plants}) 2>&1; true"
    )
    assert outcome.status in ("success", "failure"), outcome
    assert snapshot(root) == before
    assert not (root / "ran").exists() and not (root / ".git" / "commondir").exists()
    assert git(root, "branch", "--format=%(refname)") == "refs/heads/main\n"
    assert git(root, "fsck", "--strict", "--no-dangling") == ""


async def test_a_repository_inside_the_project_stays_out_of_the_index(ground: Workspace) -> None:
    root = ground.root
    git(root, "init", "-q", "sub")
    identity = ("-c", "user.name=a", "-c", "user.email=b")
    git(root / "sub", *identity, "commit", "-q", "--allow-empty", "-m", "x")
    outcome = await run(ground, "echo y > kept; git add kept sub")
    assert outcome.failure == "permanent" and "sub was added as a repository" in outcome.summary
    assert git(root, "ls-files") == "kept\n"


async def test_what_a_view_gives_back(ground: Workspace) -> None:
    root = ground.root
    script = (
        "printf 'a\\nb\\n' > 'a b'; git add -A; git commit -qm One; git tag v1; git switch -qc side;"
        " echo 2 > c; git add c; git commit -qm Two; git switch -q main; echo 3 > d; echo 4 > e;"
        " git add d; git rm -q 'a b';"
        " git stash -q; git stash list >&2; git checkout -q side"
    )
    outcome = await run(ground, script)
    assert outcome.status == "success", outcome
    assert git(root, "log", "--format=%s", "side") == "Two\nOne\nBegin\n"
    assert git(root, "tag") == "v1\n" and git(root, "symbolic-ref", "HEAD") == "refs/heads/side\n"
    assert git(root, "status", "--porcelain") == "?? e\n"
    assert git(root, "stash", "list").count("\n") == 1
    assert git(root, "fsck", "--strict", "--no-dangling") == ""
    conflict = (
        "echo x > c; git commit -qam X; git switch -qc other v1; echo y > c; git add c;"
        " git commit -qm Y; git merge side"
    )
    assert (await run(ground, conflict)).detail["exit_code"] == 1
    assert (root / ".git" / "MERGE_HEAD").exists() and "AA c" in git(root, "status", "--porcelain")
    assert (await run(ground, "echo z > c; git add c; git commit -qm Merged")).status == "success"
    assert not (root / ".git" / "MERGE_HEAD").exists()
    assert git(root, "log", "-1", "--format=%p").count(" ") == 1


async def test_the_users_own_commit_meanwhile_is_kept(ground: Workspace) -> None:
    root = ground.root
    running = asyncio.create_task(
        run(
            ground,
            "echo x > file; git add file; touch began; while [ ! -e go ]; do sleep 0.05; done;"
            " git commit -qm Theirs",
        )
    )
    while not (root / "began").exists():
        await asyncio.sleep(0.01)
    git(root, "commit", "-q", "--allow-empty", "-m", "Mine")
    (root / "go").touch()
    outcome = await running
    assert (
        outcome.failure == "permanent" and "refused what came out of the sandbox" in outcome.summary
    )
    assert git(root, "log", "--format=%s") == "Mine\nBegin\n"


async def test_a_linked_checkout_moves_its_own_branch(ground: Workspace, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    git(ground.root, "worktree", "add", "-q", "-b", "task", str(tree))
    linked = await open_workspace(tree)
    before = snapshot(ground.root)
    assert (
        await run(linked, "echo x > file; git add file; git commit -qm Task")
    ).status == "success"
    assert git(tree, "log", "-1", "--format=%s") == "Task\n" and git(tree, "status", "-s") == ""
    after = {name: text for name, text in snapshot(ground.root).items() if "ORIG" not in name}
    assert {name for name in after if after[name] != before.get(name)} <= {
        "worktrees/tree/index",
        "worktrees/tree/logs/HEAD",
    }
