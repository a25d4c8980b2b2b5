"""Where the state stands: one place for all worktrees, private, never outside the project."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest

from cockpit.core.errors import StoreUnwritable
from cockpit.core.project_paths import locate_project
from cockpit.store.db.database import Store

AS = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")


def git(where: Path, *arguments: str) -> None:
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    subprocess.run(["git", *AS, *arguments], cwd=where, env=env, check=True, capture_output=True)


def repository(where: Path) -> Path:
    where.mkdir()
    git(where, "init", "-q")
    git(where, "commit", "-q", "--allow-empty", "-m", "first")
    return where


@pytest.mark.parametrize(
    "name", ["project", "new\nline", "two\n\nlines\n", "a b\u2028c\x0b", "\udcff"]
)
def test_a_subfolder_and_a_linked_worktree_find_the_main_checkout(
    tmp_path: Path, name: str
) -> None:
    project = repository(tmp_path / name)
    deep = project / "src" / "deep"
    deep.mkdir(parents=True)
    for start in (project, deep, project / "src" / ".." / "src"):
        place = locate_project(start)
        assert (place.root, place.home, place.git) == (project, project, True)
    tree = tmp_path / f"tree of {name}"
    git(project, "worktree", "add", "-q", str(tree), "-b", "other")
    (tree / "sub").mkdir()
    for start in (tree, tree / "sub"):
        place = locate_project(start)
        assert (place.root, place.home) == (tree, project)
    assert locate_project(tree).database == project / ".cockpit" / "state" / "cockpit.db"


def test_a_submodule_is_a_project_of_its_own(tmp_path: Path) -> None:
    inner, outer = repository(tmp_path / "inner"), repository(tmp_path / "outer")
    git(outer, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner), "sub")
    place = locate_project(outer / "sub")
    assert (place.root, place.home) == (outer / "sub", outer / "sub")


def test_worktrees_of_a_bare_repository(tmp_path: Path) -> None:
    project = repository(tmp_path / "project")
    git(tmp_path, "clone", "-q", "--bare", str(project), "bare.git")
    bare = tmp_path / "bare.git"
    place = locate_project(bare)
    assert (place.root, place.git) == (bare, False)
    git(bare, "worktree", "add", "-q", str(tmp_path / "tree"), "-b", "other")
    place = locate_project(tmp_path / "tree")
    assert (place.root, place.home, place.git) == (tmp_path / "tree", tmp_path / "tree", True)


def test_variables_of_git_lead_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project, other = repository(tmp_path / "project"), repository(tmp_path / "other")
    for name, value in (
        ("GIT_DIR", other / ".git"),
        ("GIT_WORK_TREE", other),
        ("GIT_COMMON_DIR", other / ".git"),
        ("GIT_CEILING_DIRECTORIES", tmp_path),
    ):
        monkeypatch.setenv(name, str(value))
    (project / "sub").mkdir()
    assert locate_project(project / "sub").home == project


def test_without_git_the_nearest_folder_that_has_one(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    place = locate_project(deep)
    assert (place.root, place.home, place.git) == (deep, deep, False)
    (tmp_path / "a" / ".cockpit").mkdir()
    assert locate_project(deep).root == tmp_path / "a"


def test_without_the_program_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = repository(tmp_path / "project")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not locate_project(project).git


def test_the_state_is_private_and_ignored(tmp_path: Path) -> None:
    project = repository(tmp_path / "project")
    old = os.umask(0o022)
    try:
        place = locate_project(project)
        place.prepare()
        place.state.chmod(0o755)
        place.prepare()
        with Store.open(place.database):
            names = {path.name: stat.S_IMODE(path.stat().st_mode) for path in place.state.iterdir()}
    finally:
        os.umask(old)
    assert stat.S_IMODE(place.state.stat().st_mode) == 0o700
    assert {mode for name, mode in names.items() if name.startswith("cockpit.db")} == {0o600}
    assert (place.state / ".gitignore").read_text() == "*\n"
    told = subprocess.run(
        ["git", "status", "--porcelain", "-uall"], cwd=project, capture_output=True, text=True
    )
    assert told.stdout == ""


def test_git_sees_only_the_files_that_belong_into_version_control(tmp_path: Path) -> None:
    project = repository(tmp_path / "project")
    place = locate_project(project)
    place.prepare()
    for name in ("config.toml", "reviews/main..HEAD.md", "reports/chain-1-report.md"):
        (place.folder / name).parent.mkdir(exist_ok=True)
        (place.folder / name).write_text("text\n")
    status = subprocess.run(
        ["git", "status", "--porcelain", "-uall"], cwd=project, capture_output=True, text=True
    )
    assert status.stdout == "?? .cockpit/config.toml\n"


def test_a_gitignore_of_the_project_stays(tmp_path: Path) -> None:
    project = repository(tmp_path / "project")
    (project / ".cockpit").mkdir()
    (project / ".cockpit" / ".gitignore").write_text("/state/\n")
    locate_project(project).prepare()
    assert (project / ".cockpit" / ".gitignore").read_text() == "/state/\n"


@pytest.mark.parametrize("what", [".cockpit", ".cockpit/state", ".cockpit/state/.gitignore"])
@pytest.mark.parametrize("dangling", [True, False])
def test_state_behind_a_link_is_refused_and_nothing_is_made_there(
    tmp_path: Path, what: str, dangling: bool
) -> None:
    project, outside = repository(tmp_path / "project"), tmp_path / "outside"
    link = project / what
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(outside)
    if what.endswith("ignore") and not dangling:
        outside.write_text("*\n")
        locate_project(project).prepare()
        assert outside.read_text() == "*\n"
        return
    if not dangling:
        outside.mkdir()
    with pytest.raises(StoreUnwritable, match=r"link|in the way"):
        locate_project(project).prepare()
    assert not outside.exists() if dangling else list(outside.iterdir()) == []


@pytest.mark.parametrize("what", [".cockpit", ".cockpit/state"])
def test_a_file_in_the_way_is_named(tmp_path: Path, what: str) -> None:
    project = repository(tmp_path / "project")
    (project / what).parent.mkdir(parents=True, exist_ok=True)
    (project / what).write_text("mine")
    with pytest.raises(StoreUnwritable, match="blocks the path"):
        locate_project(project).prepare()
    assert (project / what).read_text() == "mine"


@pytest.mark.parametrize("elsewhere", ["/etc", ".."])
def test_a_repository_that_names_another_folder_as_its_own_is_refused(
    tmp_path: Path, elsewhere: str
) -> None:
    root = tmp_path / "outer" / "clone"
    root.mkdir(parents=True)
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    named = elsewhere if elsewhere.startswith("/") else str(root.parent)
    subprocess.run(["git", "config", "core.worktree", named], cwd=root, check=True)
    with pytest.raises(StoreUnwritable, match=r"core\.worktree"):
        locate_project(root)
