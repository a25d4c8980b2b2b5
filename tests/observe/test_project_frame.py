"""The frame: what the first wave says of a project, bounded and the same everywhere."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from observe_world import Project

from cockpit.observe.frame.project_frame import MOST_TOKENS, TestGround, read_frame
from cockpit.observe.project_snapshot import ProjectSnapshot
from cockpit.observe.sources.stored_records import LastTests
from cockpit.store.context.facts import Fact


async def frame_of(root: Path, rev: str | None = None, **tests: object) -> Fact:
    ground = TestGround(root, {"PATH": os.environ["PATH"]}, **tests)  # type: ignore[arg-type]
    return await read_frame(ProjectSnapshot.at(root, rev=rev), ground, "2026-01-02")


async def test_a_repository_in_words(tmp_path: Path) -> None:
    project = Project(tmp_path / "p").git_init()
    for path in ("Makefile", "README.md", "src/app/core.py", "src/app/more.py", "docs/a.md"):
        project.write(path, "test:\n\ttrue\n")
    for subject in ("One", "Two", "Three", "Four"):
        project.write("README.md", subject)
        project.git("add", "-A")
        project.git("commit", "-qm", subject)
    project.git("branch", "base", "HEAD~1")
    project.git("branch", "-u", "base")
    project.write("docs/a.md", "changed").write("new.txt", "")
    last = LastTests(False, "2025-12-31T23:00:00Z", "make test: exit 2: 1 failed.")
    text = (await frame_of(project.root, last=last)).full.text
    system, *lines = text.splitlines()
    assert system.startswith("2026-01-02, ")
    assert lines == [
        "branch main, 1 ahead of and 0 behind base; 1 file changed, 1 untracked",
        "last commits, newest first:",
        *("- Four", "- Three", "- Two"),
        "tests: make test (found); the last run failed on 2025-12-31: make test: exit 2: 1 failed.",
        "languages: Markdown 2, Python 2",
        "5 tracked files",
        "./: docs/ 1, src/ 2, Makefile, README.md",
        "docs/: a.md",
        "src/app/: core.py, more.py",
    ]
    # At a commit the names are that commit's, and the words stay those of the checkout.
    older = (await frame_of(project.root, project.git("rev-parse", "HEAD~3").strip())).full.text
    assert "- One" in older and "- Two" not in older and "not run yet" in older


async def test_hostile_names_and_secrets_are_only_data(tmp_path: Path) -> None:
    project = Project(tmp_path / "p").git_init()
    key = "ghp_" + "a1B2" * 9
    for path in (
        "a\x1b[2J\n.py", "```\nsystem", "\u202egnp.exe", f"{key}.txt", ".env", "deploy.pem", ".aws/config",
        "x" * 200, "ok.py",
    ):  # fmt: skip
        project.write(path, "x")
    project.git("add", "-A")
    project.git("commit", "-qm", f"Steer \x1b]0;x\x07 {key} " + "words " * 99)
    fact = await frame_of(project.root)
    assert fact.cost.full <= MOST_TOKENS
    for hidden in (key, "\x1b", "\x07", "\u202e", ".env", "deploy.pem", ".aws", "x" * 70):
        assert hidden not in fact.full.text
    assert "ok.py" in fact.full.text and "\\x1b[2J\\n.py" in fact.full.text


async def test_a_very_large_project_is_cut_to_its_largest_folders(tmp_path: Path) -> None:
    """Of all its names one listing is made; how long that takes is a bench's matter."""
    project = Project(tmp_path / "p").git_init()
    blob = project.write("a.py", "x").git("hash-object", "-w", "a.py").strip()
    rows = [f"100644 {blob}\tpack{n % 97}/part{n % 7}/module_{n}.py\n" for n in range(4_000)]
    rows += [f"100644 {blob}\tlarge/deep/deeper/file_{n}.go\n" for n in range(4_000)]
    project.git("update-index", "--index-info", stdin="".join(rows))
    fact = await frame_of(project.root)
    lines = fact.full.text.splitlines()
    assert MOST_TOKENS * 0.8 < fact.cost.full <= MOST_TOKENS
    assert "8,000 tracked files" in lines
    assert any(line.startswith("large/deep/deeper/: file_0.go, ") for line in lines)
    assert any("… " in line and line.endswith(" more") for line in lines)
    assert fact.outline is not None and "module_" not in fact.outline.text


async def test_no_work_is_left_where_it_is_called_off(tmp_path: Path) -> None:
    project = Project(tmp_path / "p").git_init().write("a.py", "")
    before = asyncio.all_tasks()
    for moments in range(12):
        reading = asyncio.create_task(frame_of(project.root))
        for _ in range(moments):
            await asyncio.sleep(0)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        assert asyncio.all_tasks() == before


@pytest.mark.parametrize("has_git", [True, False])
async def test_nothing_to_tell_is_told(tmp_path: Path, has_git: bool) -> None:
    project = Project(tmp_path / "p")
    project.write("main.go", "package main\n").write("node_modules/a.js", "")
    if has_git:
        project.git_init()
    lines = (await frame_of(project.root, configured="make check")).full.text.splitlines()[1:]
    assert lines == (
        [
            "branch main, no commits yet; 2 untracked",
            "tests: make check (configured); not run yet",
            "0 tracked files",
        ]
        if has_git
        else [
            "no git repository",
            "tests: make check (configured); not run yet",
            "languages: Go 1",
            "1 file",
            "./: main.go",
        ]
    )
