"""Where the state stands: one place for all worktrees, private, never outside the project."""

from __future__ import annotations

import os
import pwd
import stat
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from platformdirs import user_config_path, user_state_path
from state_for_tests import state_of

from cockpit.core.errors import StoreUnwritable
from cockpit.core.project_paths import (
    home_of_database,
    locate_project,
    read_project_record,
    user_folder,
)
from cockpit.core.state_folder import settle_home, state_root
from cockpit.hook.project_lookup import find_checkout
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


@pytest.mark.parametrize("name", ["project", "two\n\nlines\n", "a b\u2028c\x0b", "\udcff"])
def test_a_subfolder_and_a_linked_worktree_find_the_main_checkout(tmp_path, name):
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
    assert locate_project(tree).database == state_of(project) / "cockpit.db"


def test_a_submodule_is_a_project_of_its_own(tmp_path: Path) -> None:
    inner, outer = repository(tmp_path / "inner"), repository(tmp_path / "outer")
    git(outer, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner), "sub")
    place = locate_project(outer / "sub")
    assert (place.root, place.home) == (outer / "sub", outer / "sub")


def test_worktrees_of_a_bare_repository(tmp_path: Path) -> None:
    project, bare, tree = (tmp_path / name for name in ("project", "bare.git", "tree"))
    git(repository(project), "clone", "-q", "--bare", ".", str(bare))
    place = locate_project(bare)
    assert (place.root, place.git) == (bare, False)
    git(bare, "worktree", "add", "-q", str(tree), "-b", "other")
    place = locate_project(tree)
    assert (place.root, place.home, place.git) == (tree, tree, True)


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


def test_without_git_the_nearest_folder_that_has_one(tmp_path, monkeypatch):
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    place = locate_project(deep)
    assert (place.root, place.home, place.git) == (deep, deep, False)
    (tmp_path / "a" / ".cockpit").mkdir()
    assert locate_project(deep).root == deep, "it says nothing"
    (tmp_path / "a" / ".cockpit" / "config.toml").touch()
    assert locate_project(deep).root == tmp_path / "a"
    for home in (tmp_path / "a", tmp_path / "a" / "user"):
        monkeypatch.setenv("HOME", str(home))
        assert locate_project(deep).root == deep, "the folder of all that the user has"
        assert locate_project(tmp_path / "a").root == tmp_path / "a"


def test_without_the_program_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = repository(tmp_path / "project")
    before = locate_project(project)
    monkeypatch.setenv("PATH", str(tmp_path))
    place = locate_project(project)
    assert (place.git, place.root, place.state) == (False, project, before.state)


def test_the_state_is_private_and_git_sees_only_files_for_version_control(tmp_path: Path) -> None:
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
    assert not (project / ".cockpit").exists()
    place.folder.mkdir()
    place.prepare()
    for name in ("config.toml", "reviews/main..HEAD.md", "reports/chain-1-report.md"):
        (place.folder / name).parent.mkdir(exist_ok=True)
        (place.folder / name).write_text("text\n")
    told = ["git", "status", "--porcelain", "-uall"]
    status = subprocess.run(told, cwd=project, capture_output=True, text=True)
    assert status.stdout == "?? .cockpit/config.toml\n"
    (place.folder / ".gitignore").write_text("/mine/\n")
    place.prepare()
    assert (place.folder / ".gitignore").read_text() == "/mine/\n"


@pytest.fixture
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder of this test alone, which does not exist yet."""
    folder = tmp_path / "states"
    monkeypatch.setenv("COCKPIT_STATE_DIR", str(folder))
    return folder


@pytest.mark.parametrize(("level", "dangling"), [("projects", True), ("project", False)])
def test_state_behind_a_link_is_refused_and_nothing_is_made_there(
    tmp_path: Path, own_state: Path, level: str, dangling: bool
) -> None:
    place, outside = locate_project(repository(tmp_path / "project")), tmp_path / "outside"
    link = place.state if level == "project" else place.state.parent
    link.parent.mkdir(parents=True, mode=0o700)
    link.symlink_to(outside)
    if not dangling:
        outside.mkdir()
    with pytest.raises(StoreUnwritable, match="is a link"):
        place.prepare()
    assert not outside.exists() if dangling else list(outside.iterdir()) == []
    assert find_checkout(str(place.root)) is None


def test_a_file_in_the_way_is_named(tmp_path: Path, own_state: Path) -> None:
    place = locate_project(repository(tmp_path / "project"))
    place.state.parent.mkdir(parents=True)
    place.state.write_text("mine")
    with pytest.raises(StoreUnwritable, match="blocks the path"):
        place.prepare()
    assert place.state.read_text() == "mine"


def test_a_folder_that_others_can_write_to_is_refused(tmp_path: Path, own_state: Path) -> None:
    place = locate_project(repository(tmp_path / "project"))
    place.prepare()
    place.database.touch()
    for folder, mode in zip(
        (place.state, *place.state.parents), (0o777, 0o770, 0o1777), strict=False
    ):
        folder.chmod(mode)
        with pytest.raises(StoreUnwritable, match="Other users can write"):
            place.prepare()
        assert find_checkout(str(place.root)) is None
        folder.chmod(0o700)


def give_away(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a folder belong to another user than this process.

    Only the administrator can give a folder away; for anybody else this process becomes another user.
    """
    if os.geteuid() == 0:
        os.chown(path, 12345, 12345)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)


def test_a_folder_of_another_user_is_refused(tmp_path, own_state, monkeypatch):
    place = locate_project(repository(tmp_path / "project"))
    place.prepare()
    give_away(place.state, monkeypatch)
    with pytest.raises(StoreUnwritable, match="another user"):
        place.prepare()


def test_state_and_configuration_are_where_the_platform_says(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("COCKPIT_STATE_DIR")
    for base in ("", str(tmp_path / "xdg")):
        monkeypatch.setenv("XDG_STATE_HOME", base)
        monkeypatch.setenv("XDG_CONFIG_HOME", base)
        assert state_root() == str(user_state_path("cockpit", appauthor=False))
        assert user_folder({}) == user_config_path("cockpit", appauthor=False)
    # A relative one would be a folder of the repository in which cockpit starts.
    monkeypatch.setenv("XDG_STATE_HOME", "x/y")
    monkeypatch.setenv("XDG_CONFIG_HOME", "config")
    assert state_root() == str(tmp_path / ".local" / "state" / "cockpit")
    assert user_folder({}) == tmp_path / ".config" / "cockpit"
    monkeypatch.setenv("COCKPIT_STATE_DIR", "x/y")
    assert state_root() == str(tmp_path / "x/y")


@pytest.mark.parametrize(
    ("home", "has_entry"),
    [(None, True), (None, False), ("", True), ("relative", False), ("~", True)],
)
def test_without_a_home_nothing_is_read_from_the_checkout(tmp_path, monkeypatch, home, has_entry):
    """A repository may have a folder that is named ``~``, or as ``HOME`` is."""

    def find_entry(uid: int) -> SimpleNamespace:
        if not has_entry:
            raise KeyError(uid)
        return SimpleNamespace(pw_dir="/home/of/user")

    monkeypatch.setattr(pwd, "getpwuid", find_entry)
    monkeypatch.chdir(tmp_path)
    for name in ("HOME", "COCKPIT_STATE_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    if home is not None:
        monkeypatch.setenv("HOME", home)
    wanted = "/home/of/user" if has_entry else ""
    assert state_root() == f"{wanted}/.local/state/cockpit"
    assert str(user_folder({})) == f"{wanted}/.config/cockpit"
    monkeypatch.setenv("COCKPIT_STATE_DIR", "named")
    assert state_root() == f"{wanted}/named"
    settle_home()
    assert os.environ["HOME"] == (wanted or "/")


def test_a_variable_that_leads_into_the_checkout_is_refused(tmp_path, monkeypatch):
    project = repository(tmp_path / "project")
    (tmp_path / "link").symlink_to(project)
    for name in (project / "states", tmp_path / "link" / "states", project):
        monkeypatch.setenv("COCKPIT_STATE_DIR", str(name))
        with pytest.raises(StoreUnwritable, match="inside the project"):
            locate_project(project).prepare()
    assert sorted(path.name for path in project.iterdir()) == [".git"]


def test_every_project_has_a_folder_of_its_own(tmp_path: Path) -> None:
    names = ("a/shop", "b/shop", "shop", "shop ", "SHOP", "…", ".git-", "s\nhop")
    places = []
    for name in names:
        (tmp_path / name).mkdir(parents=True)
        places.append(locate_project(tmp_path / name))
    assert len({place.state for place in places}) == len(names)
    for place in places:
        place.prepare()
        record = read_project_record(place.state)
        assert record is not None and record.identity == place.home and record.exists
        assert home_of_database(place.database) == place.home


def test_a_cockpit_folder_of_another_user_above_is_not_the_project(tmp_path, monkeypatch):
    (tmp_path / "above" / "mine").mkdir(parents=True)
    (tmp_path / "above" / ".cockpit" / "roles").mkdir(parents=True)
    assert locate_project(tmp_path / "above" / "mine").home == tmp_path / "above"
    give_away(tmp_path / "above" / ".cockpit", monkeypatch)
    assert locate_project(tmp_path / "above" / "mine").home == tmp_path / "above" / "mine"


def test_a_repository_that_names_another_folder_as_its_own_is_refused(tmp_path: Path) -> None:
    root = repository(tmp_path / "clone")
    for named in ("/etc", str(tmp_path)):
        git(root, "config", "core.worktree", named)
        with pytest.raises(StoreUnwritable, match=r"core\.worktree"):
            locate_project(root)
