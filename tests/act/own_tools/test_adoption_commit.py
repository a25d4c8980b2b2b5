"""The commit of an adoption: exactly its files, and a reason in words wherever there is none."""

from __future__ import annotations

from pathlib import Path

import pytest
from copied_repository import begin_repository, git

from cockpit.access.confined_paths import Confined
from cockpit.act.own_tools.adoption_commit import commit_adoption, find_commit, plan_commit
from cockpit.act.sandbox.bubblewrap import Sandbox
from cockpit.act.workspace import Workspace

pytestmark = pytest.mark.slow

FILES = {".cockpit/tools/a_tool.py": "code\n", ".cockpit/tools/tests/test_a_tool.py": "test\n"}
NONE = Sandbox(None, None, missing="bubblewrap (bwrap) is not installed")


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A repository with one commit, and something that the user has staged and changed."""
    root = begin_repository(tmp_path / "project", {"a.py": "one\n"})
    (root / "staged.py").write_text("staged\n")
    git(root, "add", "staged.py")
    (root / "a.py").write_text("changed\n")
    return Workspace(Confined(root), NONE, None, {})


def write(ground: Workspace) -> None:
    for path, text in FILES.items():
        (ground.root / path).parent.mkdir(parents=True, exist_ok=True)
        (ground.root / path).write_text(text)


async def test_exactly_the_files_are_committed_once(ground: Workspace) -> None:
    before = git(ground.root, "status", "--porcelain")
    plan = await plan_commit(ground, FILES, "Adopt\n\nCockpit-Session: s-1")
    assert plan.payload is not None and plan.branch == "main"
    write(ground)
    assert await find_commit(plan.payload, "k-1", ground) == "not_done"
    assert (await commit_adoption(plan.payload, "k-1", ground)).startswith("Committed ")
    assert await find_commit(plan.payload, "k-1", ground) == "done"
    assert await commit_adoption(plan.payload, "k-1", ground) == "They are committed already."
    assert git(ground.root, "show", "--format=", "--name-only").splitlines() == sorted(FILES)
    assert git(ground.root, "status", "--porcelain") == before
    assert git(ground.root, "show", "-s", "--format=%B").endswith("s-1\nCockpit-Key: k-1")


async def test_where_git_ignores_the_folder_its_rule_is_named(ground: Workspace) -> None:
    (ground.root / ".gitignore").write_text("*.tmp\n.cockpit/\n")
    plan = await plan_commit(ground, FILES, "Adopt")
    assert plan.payload is None
    assert "git ignores the files (.gitignore:2:.cockpit/)" in plan.problem


async def test_an_exception_to_a_rule_is_no_rule(ground: Workspace) -> None:
    (ground.root / ".gitignore").write_text(".cockpit/*\n!.cockpit/tools/\n")
    plan = await plan_commit(ground, FILES, "Adopt")
    assert plan.payload is not None, plan.problem


async def test_during_a_merge_nothing_is_committed(ground: Workspace) -> None:
    plan = await plan_commit(ground, FILES, "Adopt")
    assert plan.payload is not None
    write(ground)
    (ground.root / ".git" / "MERGE_HEAD").write_text(git(ground.root, "rev-parse", "HEAD"))
    words = await commit_adoption(plan.payload, "k-1", ground)
    assert words == "Not committed: A merge is in progress: commit the files once it ended."
    assert git(ground.root, "log", "--format=%s") == "Begin"


async def test_what_git_refuses_is_said_with_the_command_to_do_it_by_hand(ground):
    plan = await plan_commit(ground, FILES, "Adopt")
    assert plan.payload is not None
    write(ground)
    git(ground.root, "switch", "-q", "-c", "other")
    words = await commit_adoption(plan.payload, "k-1", ground)
    assert words.startswith("Not committed: The branch is other, not main as shown")
    assert "git add -- .cockpit/tools/a_tool.py" in words
    assert git(ground.root, "log", "--format=%s") == "Begin"


async def test_without_a_repository_it_is_said(tmp_path: Path) -> None:
    plan = await plan_commit(Workspace(Confined(tmp_path), NONE, None, {}), FILES, "Adopt")
    assert plan.payload is None
    assert "is not a git repository" in plan.problem
