"""Programs that cockpit itself starts are never those of a project, whatever PATH says."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import run_cockpit
from state_for_tests import kept_variables

from cockpit.core.project.own_programs import find_program, safe_path
from cockpit.core.project_paths import locate_project

pytestmark = pytest.mark.slow

PATIENCE_S = 60.0


def plant(folder: Path, trace: Path, name: str = "git") -> Path:
    """Put a program into a folder that writes a file before it does what the real one does."""
    folder.mkdir(parents=True, exist_ok=True)
    real = find_program(name)
    program = folder / name
    program.write_text(f'#!/bin/sh\necho planted >> "{trace}"\nexec {real} "$@"\n')
    program.chmod(0o755)
    return program


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    return root


def test_a_cloned_repository_runs_no_program_that_it_ships(project: Path, tmp_path: Path) -> None:
    trace, entry = tmp_path / "trace", "node_modules/.bin"
    for name in ("git", "rg", "gh", "bwrap", "prlimit"):
        plant(project / entry, trace, name)
    kept = kept_variables()
    env = {**kept, "HOME": str(tmp_path), "PATH": f"{project / entry}:{entry}:{kept['PATH']}"}
    for words in (
        ("sessions"),
        ("doctor",),
        ("run", "What is here?", "--model", "offline", "--approve", "all"),
    ):
        run_cockpit.run(words, cwd=project, env=env, patience_s=PATIENCE_S)
    assert not trace.exists(), trace.read_text()


def test_a_folder_of_a_known_project_does_not_count_elsewhere(project, tmp_path, monkeypatch):
    program = plant(project / ".venv" / "bin", tmp_path / "trace")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    locate_project(project).prepare()
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    assert find_program("git") != str(program)
    assert str(program.parent) not in safe_path().split(":")


def test_a_link_into_the_project_is_not_followed(project, tmp_path, monkeypatch):
    program = plant(project / "tools", tmp_path / "trace")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").symlink_to(program)
    monkeypatch.chdir(project)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    assert find_program("git") not in (str(program), str(tmp_path / "bin" / "git"))


def test_without_a_safe_folder_nothing_is_found(project, tmp_path, monkeypatch):
    plant(project, tmp_path / "trace")
    monkeypatch.chdir(project)
    monkeypatch.setenv("PATH", f".:{project}:")
    assert find_program("git") is None
    assert safe_path() == ""
