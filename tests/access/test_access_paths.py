"""Paths: whatever is written, nothing outside the project and none of its machinery is reached."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from examples import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cockpit.access.confined_paths import Confined, PathMissing, PathRefused


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    (root / "src" / "a.py").write_text("inside\n")
    (root / ".git" / "hooks").mkdir(parents=True)
    (root / ".git" / "config").write_text("machinery\n")
    (root / ".cockpit" / "state").mkdir(parents=True)
    (root / ".cockpit" / "state" / "cockpit.db").write_text("state\n")
    (root / ".cockpit" / "config.toml").write_text("mine\n")
    (tmp_path / "secret").write_text("outside\n")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "deep").write_text("outside\n")
    return root


@pytest.fixture
def confined(project: Path) -> Confined:
    return Confined(project)


def read(confined: Confined, path: str) -> str:
    with confined.open_read(path) as file:
        return file.read().decode()


def test_a_file_inside_is_read(confined: Confined, project: Path) -> None:
    assert read(confined, "src/a.py") == "inside\n"
    assert read(confined, "./src//a.py") == "inside\n"
    assert confined.inside("src/a.py") == project.resolve() / "src" / "a.py"
    assert confined.relative("./src//a.py") == "src/a.py"
    assert confined.relative(".") == "."
    assert read(confined, ".cockpit/config.toml") == "mine\n"


@pytest.mark.parametrize(
    "path",
    [
        *("", "..", "../secret", "/etc/passwd", "/proc/self/environ", "~/.ssh/id_rsa"),
        *("src/a.py\0.txt", ".git/config", ".git/hooks/pre-commit", ".Git/hooks/pre-commit"),
        *("src/.git/config", ".git\u200c/config", "\uff0egit/config", ".git./config"),
        *(".git::$INDEX_ALLOCATION/config", "GIT~1/config", ".cockpit/state/cockpit.db"),
        *(".COCKPIT/State/cockpit.db", "x" * 5000),
    ],
)
@pytest.mark.parametrize("write", [False, True])
def test_hostile_spellings_are_refused(confined: Confined, path: str, write: bool) -> None:
    with pytest.raises(PathRefused) as refused:
        confined.inside(path, write=write)
    assert refused.value.reason
    with pytest.raises(PathRefused):
        confined.open_read(path)


@pytest.mark.parametrize(
    ("link", "target", "path"),
    [
        ("out", "../secret", "out"),
        ("folder", "../elsewhere", "folder/deep"),
        ("environ", "/proc/self/environ", "environ"),
        ("hidden", ".git", "hidden/config"),
        ("data", ".cockpit/state", "data/cockpit.db"),
    ],
)
def test_links_that_lead_out_are_refused(confined, project, link, target, path):
    (project / link).symlink_to(target)
    with pytest.raises(PathRefused):
        confined.open_read(path)
    with pytest.raises(PathRefused):
        confined.inside(path, write=True)


def test_links_inside_are_read_but_not_written(confined: Confined, project: Path) -> None:
    (project / "circle").symlink_to("circle")
    with pytest.raises(PathRefused):
        confined.open_read("circle")
    (project / "alias.py").symlink_to("src/a.py")
    (project / "code").symlink_to("src")
    assert read(confined, "alias.py") == "inside\n"
    assert read(confined, "code/a.py") == "inside\n"
    with pytest.raises(PathRefused, match="symbolic link"):
        confined.inside("alias.py", write=True)
    assert confined.inside("code/a.py", write=True) == project.resolve() / "src" / "a.py"


class SwappedAfterCheck(Confined):
    """Runs an action right after the check and before the file is opened."""

    def __init__(self, root: Path, swap: object) -> None:
        super().__init__(root)
        self.swap = swap

    def inside(self, path: str, *, write: bool = False) -> Path:
        real = super().inside(path, write=write)
        self.swap()  # type: ignore[operator]  # any callable
        return real


def test_a_file_swapped_for_a_link_after_the_check_is_refused(project: Path) -> None:
    def swap() -> None:
        (project / "src" / "a.py").unlink()
        (project / "src" / "a.py").symlink_to(project.parent / "secret")

    with pytest.raises(PathRefused):
        SwappedAfterCheck(project, swap).open_read("src/a.py")


def test_a_directory_swapped_for_a_link_after_the_check_is_refused(project: Path) -> None:
    (project / "folder").mkdir()
    (project / "folder" / "deep").write_text("inside\n")

    def swap() -> None:
        (project / "folder").rename(project / "moved")
        (project / "folder").symlink_to(project.parent / "elsewhere")

    with pytest.raises(PathRefused):
        SwappedAfterCheck(project, swap).open_read("folder/deep")


def test_a_write_follows_no_directory_swapped_after_the_check(project: Path) -> None:
    (project / "folder").mkdir()

    def swap() -> None:
        (project / "folder").rmdir()
        (project / "folder").symlink_to(project.parent / "elsewhere")

    with (
        pytest.raises(PathRefused),
        SwappedAfterCheck(project, swap).parent("folder/new") as (handle, name),
    ):
        os.close(os.open(name, os.O_CREAT | os.O_WRONLY, dir_fd=handle))
    assert not (project.parent / "elsewhere" / "new").exists()


def test_pipes_sockets_and_directories_are_refused(confined: Confined, project: Path) -> None:
    os.mkfifo(project / "pipe")
    with pytest.raises(PathRefused, match="pipe"):
        confined.open_read("pipe")
    with pytest.raises(PathRefused, match="directory"):
        confined.open_read("src")
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(project)
        try:
            server.bind("sock")
        finally:
            os.chdir(here)
    with pytest.raises(PathRefused):
        confined.open_read("sock")


def test_a_missing_file_is_told_apart(confined: Confined) -> None:
    with pytest.raises(PathMissing, match=r"there is no file 'src/b\.py'"):
        confined.open_read("src/b.py")
    with pytest.raises(PathMissing):
        confined.open_read("nowhere/b.py")
    with pytest.raises(PathRefused, match="not a directory"):
        confined.open_read("src/a.py/x")


def test_parents_are_made_inside(confined: Confined, project: Path) -> None:
    with confined.parent("new/deep/file.txt", create=True) as (handle, name):
        os.close(os.open(name, os.O_CREAT | os.O_WRONLY, dir_fd=handle))
    assert (project / "new" / "deep" / "file.txt").exists()
    with pytest.raises(PathMissing), confined.parent("other/file.txt"):
        pass


def test_the_root_may_be_a_link_but_not_machinery(project: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(project)
    assert read(Confined(tmp_path / "link"), "src/a.py") == "inside\n"
    for root in (project / ".git", project / ".git" / "hooks", Path("/proc/self")):
        with pytest.raises(PathRefused):
            Confined(root)


part = st.text(max_size=5) | st.sampled_from(
    [*("..", ".", "src", "a.py", ".git", ".GIT", ".cockpit", "state"), *"~/\0é\u202e "]
)


@pytest.mark.search
@settings(
    max_examples=examples(50),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(part, max_size=6), st.sampled_from(["/", "//", "/./"]))
def test_no_spelling_leads_out(confined: Confined, parts: list[str], between: str) -> None:
    path = between.join(parts)
    try:
        real = confined.inside(path)
    except PathRefused:
        return
    assert real.is_relative_to(confined.root)
    below = [name.casefold() for name in real.relative_to(confined.root).parts]
    assert ".git" not in below
    assert below[:2] != [".cockpit", "state"]
