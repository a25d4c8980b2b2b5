"""A small real project and a scripted agent that fixes it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from copied_repository import copy_repository

FIX = """
[[turn]]
when = { not_called = ["request_context"] }
text = "I need the file first."
[[turn.call]]
name = "request_context"
arguments.purpose = "fix add"
arguments.question = "what does add do?"
arguments.scope = ["file:calc.py", "file:notes.md"]

[[turn]]
when = { called = ["request_context"], not_called = ["edit_file"] }
[[turn.call]]
name = "edit_file"
arguments.path = "calc.py"
arguments.old = "a - b"
arguments.new = "a + b"

[[turn]]
when = { called = ["edit_file"] }
text = "add adds now."
[[turn.call]]
name = "finish"
arguments.status = "done"
arguments.summary = "add adds."
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Git repository with a function that subtracts; the user has no configuration."""
    monkeypatch.setenv("COCKPIT_CONFIG_DIR", str(tmp_path / "user"))
    return copy_repository(_make_calc, tmp_path / "calc")


def _make_calc(root: Path) -> None:
    (root / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    (root / "notes.md").write_text("add must add\n")
    for words in (
        ["init", "-q", "-b", "main"],
        ["config", "user.name", "T"],
        ["config", "user.email", "t@example.invalid"],
        ["add", "-A"],
        ["commit", "-q", "-m", "Add calc"],
    ):
        subprocess.run(["git", *words], cwd=root, check=True)


@pytest.fixture
def model(tmp_path: Path) -> str:
    """The name of a scripted model that fixes the project in three waves."""
    path = tmp_path / "fix.toml"
    path.write_text(FIX)
    return f"script:{path}"
