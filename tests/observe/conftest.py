from __future__ import annotations

import os
from pathlib import Path

import pytest
from copied_repository import copy_repository
from loop.intake.gh_standin import GhStandIn
from observe_world import Project


@pytest.fixture(autouse=True)
def plain_git(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A git repository with two commits: src/app.py grew an argument."""
    return Project(copy_repository(_make_app, tmp_path / "project"))


def _make_app(root: Path) -> None:
    made = Project(root).git_init()
    made.write("src/app.py", APP_ONE).write("src/use.py", USE).write("README.md", README)
    made.write("tests/test_app.py", TEST).commit("first")
    made.write("src/app.py", APP_TWO).commit("load takes a mode")


@pytest.fixture
def github(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GhStandIn:
    """A stand-in for gh, which knows no answer yet."""
    standin = GhStandIn(tmp_path / "bin", {})
    monkeypatch.setenv("PATH", str(standin.directory), prepend=os.pathsep)
    return standin


APP_ONE = '''"""Loads things."""

LIMIT = 10


class Config:
    """Settings of the app."""

    def load(self, path):
        """Read the file at path."""
        return open(path).read()


def helper(value):
    return value + LIMIT
'''
APP_TWO = APP_ONE.replace("def load(self, path):", "def load(self, path, mode='r'):").replace(
    "open(path)", "open(path, mode)"
)
USE = """from src.app import Config, helper


def main():
    config = Config()
    print(config.load("x"), helper(1))
"""
TEST = """from src.app import helper


def test_helper():
    assert helper(1) == 11
"""
README = "# Title\n\nWords about load.\n\n## Part\n\nMore words.\n"
