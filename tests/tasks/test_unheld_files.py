"""Nothing that a task made goes with its worktree: what git leaves out is added, or named."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from cockpit.tasks.agent_changes.unheld_files import add_unheld, list_unheld
from cockpit.tasks.git import commit_all

pytestmark = pytest.mark.slow


def git(root: Path, *words: str) -> str:
    who = (
        "-c",
        "user.name=A",
        "-c",
        "user.email=a@example.org",
        "-c",
        "protocol.file.allow=always",
    )
    done = subprocess.run(["git", *who, *words], cwd=root, check=True, capture_output=True)
    return os.fsdecode(done.stdout)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "T-1"
    git(tmp_path, "init", "-q", "T-1")
    (root / ".gitignore").write_text("lib/\nsecret.cfg\ndist/\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "Start")
    return root


async def held_and_left(root: Path, text: str = "") -> tuple[set[str], tuple[str, ...]]:
    base = git(root, "rev-parse", "HEAD").strip()
    await add_unheld(root, text)
    await commit_all(root, "Work")
    return set(git(root, "ls-files", "-z").split("\0")), await list_unheld(root, base)


async def test_a_new_repository_inside_is_added_as_files_and_its_history_is_kept(
    root: Path, tmp_path: Path
) -> None:
    for place in ("web", "web/inner"):
        git(root, "init", "-q", place)
        (root / place / "index.js").write_text("app\n")
    git(root / "web", "add", "index.js")
    git(root / "web", "commit", "-qm", "Begin the app")
    held, left = await held_and_left(root)
    assert {"web/index.js", "web/inner/index.js"} <= held
    assert left == ()
    assert "Begin the app" in git(tmp_path / "T-1.web.git", "log", "--format=%s")


async def test_a_clone_and_a_recorded_link_are_named(root: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", str(root), str(root / "copy"))
    git(tmp_path, "clone", "-q", str(root), str(root / "linked"))
    base = git(root, "rev-parse", "HEAD").strip()
    git(root, "add", "linked")
    git(root, "commit", "-qm", "Link")
    await add_unheld(root, "")
    assert await list_unheld(root, base) == ("copy/", "linked")


async def test_ignored_files_are_added_where_the_task_names_them_and_else_named(root: Path) -> None:
    for name in ("lib/a.js", "secret.cfg", "dist/bundle.js", "__pycache__/a.pyc"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("made\n")
    held, left = await held_and_left(root, "Write lib/a.js")
    assert "lib/a.js" in held
    assert left == ("secret.cfg",)


async def test_a_name_that_is_no_utf_8_is_committed(root: Path) -> None:
    Path(os.fsdecode(os.fsencode(root) + b"/caf\xe9.txt")).write_text("x\n")
    assert await commit_all(root, "Work") == ("caf\\xe9.txt",)
    assert (await held_and_left(root))[1] == ()
