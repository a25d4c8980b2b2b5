"""Git over a checkout that a command in the sandbox has prepared for it.

The user has a filter of their own, a Python module. What stands in the checkout comes first on Python's
path: the next git that reads a file there would run the command's program with the user's rights.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sandbox_world import answer

from cockpit.access.reading_sandbox import use_reading_sandbox
from cockpit.access.run_program import run_git
from cockpit.act.sandbox.read_checkout import CheckoutSandbox
from cockpit.act.workspace import Workspace

pytestmark = pytest.mark.slow

PREPARE = """
import pathlib, sys
ran = sys.argv[1]
pathlib.Path("tidy.py").write_text(
    "import os, sys\\n"
    "try:\\n    open(os.path.join(%r, open('/proc/self/comm').read().strip()), 'w').close()\\n"
    "except OSError:\\n    pass\\n"
    "sys.stdout.write(sys.stdin.read().replace('dirty', 'clean'))\\n" % ran)
pathlib.Path(".gitattributes").write_text("*.txt filter=tidy merge=tidy\\n")
pathlib.Path("a.txt").write_text("a dirty line\\nand more\\n")
"""
USER = """
[user]
  name = Ada
  email = ada@example.org
[filter "tidy"]
  clean = python3 -m tidy %f
  smudge = python3 -m tidy %f
  required = true
[merge "tidy"]
  driver = python3 -m tidy %A < %B
[core]
  excludesFile = ~/ignored
"""


@pytest.fixture
def ran(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder outside the project where a program that ran leaves its name."""
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(USER)
    (home / "ignored").write_text("*.log\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.delenv("GIT_CONFIG_GLOBAL")
    (project / "a.txt").write_text("a line\n")
    (project / "b.txt").write_text("b line\n")
    for words in (["add", "a.txt", "b.txt"], ["commit", "-q", "-m", "Files"]):
        subprocess.run(["git", *words], cwd=project, check=True)
    ran = tmp_path / "ran"
    ran.mkdir()
    use_reading_sandbox(CheckoutSandbox())
    yield ran
    use_reading_sandbox(None)


async def test_a_filter_of_the_user_does_its_work_and_runs_nothing_of_a_checkout(ground, ran):
    """It is the user's own after all: what it makes of a file is what git compares and keeps."""

    async def confined(words: str) -> str:
        done = await run_git(*words.split(), cwd=ground.root)
        assert not done.error_text.startswith("bwrap"), done.error_text
        assert list(ran.iterdir()) == [], words
        return done.text

    await answer(ground, PREPARE, ran)
    assert "+a clean line\n+and more\n" in await confined("diff -- a.txt")
    await confined("add a.txt")
    assert await confined("show :a.txt") == "a clean line\nand more\n"
    (ground.root / "x.log").write_text("left out by the user's own list\n")
    assert await confined("status --porcelain") == "M  a.txt\n?? .gitattributes\n?? tidy.py\n"
    for words in ("blame a.txt", "commit -q -m x -- a.txt", "reset -q --hard"):
        (ground.root / "a.txt").write_text("a dirty line\nand more\n")
        await confined(words)


async def test_the_attack_works_without_the_defence(ground: Workspace, ran: Path) -> None:
    await answer(ground, PREPARE, ran)
    use_reading_sandbox(None)
    assert (await run_git("diff", cwd=ground.root)).ok
    assert len(list(ran.iterdir())) == 1


async def test_a_merge_driver_of_the_user_stays_inside(ground: Workspace, ran: Path) -> None:
    root = ground.root
    subprocess.run(["git", "branch", "other"], cwd=root, check=True)
    for branch, text in (("other", "theirs\n"), ("main", "ours\n")):
        subprocess.run(["git", "checkout", "-q", branch], cwd=root, check=True)
        (root / "b.txt").write_text(text)
        subprocess.run(["git", "commit", "-q", "-am", branch], cwd=root, check=True)
    await answer(ground, PREPARE, ran)
    await run_git("merge", "--no-edit", "other", cwd=root)
    assert list(ran.iterdir()) == []


async def test_a_reading_sees_no_home_and_changes_nothing(ground, ran, monkeypatch):
    monkeypatch.setenv("COCKPIT_API_KEY", "a-key")
    spy = (
        "import json, os, pathlib, sys\nsys.stdin.read()\n"
        "def tried(path):\n"
        "    try:\n        pathlib.Path(path).write_text('x')\n    except OSError:\n        return False\n"
        "    return True\n"
        "print(json.dumps([os.listdir(os.environ['HOME']), 'COCKPIT_API_KEY' in os.environ,"
        " tried('planted'), tried('.git/planted')]))\n"
    )
    await answer(ground, PREPARE, ran)
    (ground.root / "tidy.py").write_text(spy)
    done = await run_git("diff", "--", "a.txt", cwd=ground.root)
    added = next(line for line in done.text.splitlines() if line.startswith("+["))
    assert json.loads(added[1:]) == [["ignored"], False, False, False]


async def test_what_a_reading_shows_is_what_git_shows(ground, ran):
    """In a folder of the checkout, in a linked one, with objects of another repository, and without one."""
    root = ground.root
    (root / "in").mkdir()
    (root / "in" / "c.md").write_text("c\n")
    linked, borrowed, plain = (root.parent / name for name in ("linked", "borrowed", "plain"))
    subprocess.run(["git", "worktree", "add", "-q", str(linked)], cwd=root, check=True)
    subprocess.run(["git", "clone", "-q", "--shared", str(root), str(borrowed)], check=True)
    plain.mkdir()
    for folder in (root / "in", linked, borrowed, plain):
        (folder / "new.md").write_text("new\n")
        for words in ("status --porcelain", "ls-files -o", "diff HEAD", "grep c"):
            confined = await run_git(*words.split(), cwd=folder)
            use_reading_sandbox(None)
            as_it_is = await run_git(*words.split(), cwd=folder)
            use_reading_sandbox(CheckoutSandbox())
            assert (confined.code, confined.stdout) == (as_it_is.code, as_it_is.stdout), words


async def test_a_reading_of_a_linked_tree_hides_passwords_and_opens_no_submodule(ground, ran):
    """The settings lie outside of the tree; the folder on the way to a submodule may not be moved there."""
    root, linked = ground.root, ground.root.parent / "linked"
    local = ("-c", "protocol.file.allow=always")
    for words in (
        ("submodule", "--quiet", "add", str(root), "sub/module"),
        ("commit", "-q", "-m", "Submodule"),
        ("config", "remote.origin.url", "https://ada:a-password@example.org/x"),
        ("worktree", "add", "-q", str(linked)),
    ):
        subprocess.run(["git", *local, *words], cwd=root, check=True)
    subprocess.run(
        ["git", *local, "submodule", "--quiet", "update", "--init"], cwd=linked, check=True
    )
    (linked / ".gitattributes").write_text("*.txt filter=tidy\n")
    (linked / "a.txt").write_text("changed\n")
    (linked / "tidy.py").write_text(
        "import pathlib, sys\nsys.stdin.read()\n"
        f"print('a-password' in pathlib.Path({str(root / '.git' / 'config')!r}).read_text())\n"
        "for place in ('sub', 'sub/module'):\n"
        "    try:\n        pathlib.Path(place, 'planted').touch()\n"
        "    except OSError as error:\n        print(error.strerror)\n"
    )
    done = await run_git("diff", "--", "a.txt", cwd=linked)
    added = [line[1:] for line in done.text.splitlines() if line.startswith("+")][1:]
    assert added == ["False", "Read-only file system", "Read-only file system"]
