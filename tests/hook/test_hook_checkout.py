"""The project is found without Git as Git would find it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hook_world import Project, git

from cockpit.core.project_paths import locate_project
from cockpit.hook.project_lookup import find_checkout


@pytest.fixture
def world(bare: Project) -> Path:
    """A repository, a linked worktree of it, a submodule in it and a folder without Git; cockpit has
    been in each."""
    above = bare.root.parent
    git(bare.root, "worktree", "add", "-q", str(above / "beside"))
    library = above / "library"
    library.mkdir()
    git(library, "init", "-q")
    git(library, "commit", "-q", "--allow-empty", "-m", "begin")
    allow = ("-c", "protocol.file.allow=always")
    git(bare.root, *allow, "submodule", "add", "-q", str(library), "vendor")
    (above / "plain" / "deep").mkdir(parents=True)
    (above / "plain" / ".cockpit").mkdir()
    for folder in (bare.root, above / "plain", bare.root / "vendor"):
        place = locate_project(folder)
        place.prepare()
        place.database.touch()
    return above


def test_it_is_where_git_says(world: Path) -> None:
    for name in ("shop/src", "beside", "beside/src", "plain/deep", "shop/vendor"):
        expected = locate_project(world / name)
        found = find_checkout(str(world / name))
        assert found is not None, name
        assert (found.root, found.home) == (str(expected.root), str(expected.home))
        assert found.database == str(expected.database)
    for name in ("library", "gone/deeper"):
        assert find_checkout(str(world / name)) is None, "cockpit never was there"
    assert find_checkout("\0") is None


@pytest.mark.parametrize("part", [".", "cockpit.db"])
def test_a_link_leads_nowhere(world: Path, part: str) -> None:
    path = locate_project(world / "shop").state / part
    path.rename(world / "moved")
    path.symlink_to(world / "moved")
    assert find_checkout(str(world / "shop")) is None
