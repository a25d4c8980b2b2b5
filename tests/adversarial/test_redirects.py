"""A repository that borrows from another one: listed, and refused where it is not the user's to lend."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from copied_repository import begin_repository, git

from cockpit.access import git_folders
from cockpit.access.git_folders import list_redirects
from cockpit.access.run_program import run_git
from cockpit.commands.setup.refusals import list_refusals
from cockpit.core.errors import CockpitError
from cockpit.core.project_paths import locate_project


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """A repository of the user's that the project has no business with."""
    return begin_repository(tmp_path / "private", {"diary.txt": "secret thoughts\n"})


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return begin_repository(tmp_path / "project", {})


async def explained(root: Path) -> str:
    listed = await list_refusals(locate_project(root))
    return "\n".join(f"{each.subject} {each.reason}" for each in listed)


async def test_borrowed_objects_are_listed(project: Path, private: Path) -> None:
    objects = private / ".git" / "objects"
    (project / ".git" / "objects" / "info" / "alternates").write_text(f"# mine\n{objects}\n")
    assert [each.target for each in list_redirects(project)] == [str(objects)]
    assert f"git redirect objects/info/alternates to '{objects}' is followed, and listed" in (
        await explained(project)
    )
    diary = git(private, "rev-parse", "HEAD:diary.txt")
    assert (await run_git("cat-file", "blob", diary, cwd=project)).text == "secret thoughts\n"


@pytest.mark.parametrize("chain", [1, 2])
async def test_objects_that_others_can_write_are_refused(project, private, tmp_path, chain):
    """Also where a repository of the user's borrows them in turn."""
    lent = tmp_path / "lent" / "objects"
    (lent / "info").mkdir(parents=True)
    lent.chmod(0o777)
    first = private if chain == 2 else project
    (first / ".git" / "objects" / "info" / "alternates").write_text(f"{lent}\n")
    if chain == 2:
        link = project / ".git" / "objects" / "info" / "alternates"
        link.write_text("../../../private/.git/objects\n")
    with pytest.raises(CockpitError, match="others can write to it") as error:
        await run_git("status", cwd=project)
    assert error.value.code == "git_redirect"
    (project / "in").mkdir()
    with pytest.raises(CockpitError, match="others can write to it"):
        await run_git("log", cwd=project / "in")
    assert "is refused, and no git is started" in await explained(project)


async def test_objects_of_another_user_are_refused(project, private, monkeypatch):
    (project / ".git" / "objects" / "info" / "alternates").write_text(
        f"{private / '.git' / 'objects'}\n"
    )
    monkeypatch.setattr(git_folders.os, "geteuid", lambda: 4242)
    if (private / ".git" / "objects").stat().st_uid == 0:
        os.chown(private / ".git" / "objects", 4243, -1)
    with pytest.raises(CockpitError, match="it belongs to another user"):
        await run_git("status", cwd=project)


async def test_a_copied_folder_does_not_share_another_repository(project, private):
    (project / ".git" / "commondir").write_text(f"{private / '.git'}\n")
    assert git(project, "show", "HEAD:diary.txt") == "secret thoughts", "git itself follows it"
    with pytest.raises(CockpitError, match="commondir of its repository leads to"):
        await run_git("show", "HEAD:diary.txt", cwd=project)


async def test_a_file_and_a_link_in_the_place_of_a_repository_are_listed(tmp_path, private):
    for name in ("file", "link"):
        root = tmp_path / name
        root.mkdir()
        if name == "file":
            (root / ".git").write_text(f"gitdir: {private / '.git'}\n")
        else:
            (root / ".git").symlink_to(private / ".git")
        (redirect,) = list_redirects(root)
        assert (redirect.file, redirect.target) == (".git", str(private / ".git"))
        assert "git redirect .git" in await explained(root)


async def test_worktrees_and_submodules_are_no_redirects(project, private, tmp_path):
    git(
        project, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(private), "vendor",
    )  # fmt: skip
    git(project, "worktree", "add", "-q", str(tmp_path / "tree"))
    for root in (project, project / "vendor", tmp_path / "tree"):
        assert list_redirects(root) == []
        assert (await run_git("status", cwd=root)).ok


async def test_variables_lend_nothing(project, private, monkeypatch):
    diary = git(private, "rev-parse", "HEAD:diary.txt")
    monkeypatch.setenv("GIT_ALTERNATE_OBJECT_DIRECTORIES", str(private / ".git" / "objects"))
    assert git(project, "cat-file", "blob", diary) == "secret thoughts"
    assert not (await run_git("cat-file", "blob", diary, cwd=project)).ok
    monkeypatch.delenv("GIT_ALTERNATE_OBJECT_DIRECTORIES")
    monkeypatch.setenv("GIT_COMMON_DIR", str(private / ".git"))
    assert not (await run_git("show", "HEAD:diary.txt", cwd=project)).ok
