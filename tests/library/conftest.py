"""A small real project and a scripted agent that fixes it."""

from __future__ import annotations

from pathlib import Path

import pytest
from copied_repository import copy_repository
from loop.loop_calc import CALC, make_calc
from loop.scenario import ask, turn

FIX = (
    ask(
        *("file:calc.py", "file:notes.md"),
        when='not_called = ["request_context"]',
        text="I need the file first.",
    )
    + turn("edit_file", 'called = ["request_context"]', path="calc.py", old="a - b", new="a + b")
    + turn("finish", 'called = ["edit_file"]', "add adds now.", status="done", summary="add adds.")
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Git repository with a function that subtracts; the user has no configuration."""
    monkeypatch.setenv("COCKPIT_CONFIG_DIR", str(tmp_path / "user"))
    return copy_repository(_make_calc, tmp_path / "calc")


def _make_calc(root: Path) -> None:
    make_calc(root, {"calc.py": CALC, "notes.md": "add must add\n"})


@pytest.fixture
def model(tmp_path: Path) -> str:
    """The name of a scripted model that fixes the project in three waves."""
    path = tmp_path / "fix.toml"
    path.write_text(FIX)
    return f"script:{path}"
