"""The examples of ``docs/examples`` run as they are."""

from __future__ import annotations

import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"


@pytest.fixture
def run(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """Run an example in this process, whose user the tests stand for: they may run below an agent."""
    monkeypatch.chdir(project)

    def run_example(name: str, *arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", [name, *arguments])
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        return capsys.readouterr().out

    return run_example


def test_every_example_is_tried_here() -> None:
    names = {path.name for path in EXAMPLES.glob("*.py")}
    assert names == {"review_a_range.py", "approve_in_python.py", "follow_events.py"}


def test_review_a_range(project: Path, run: Callable[..., str]) -> None:
    (project / "calc.py").write_text("def add(a, b):\n    return a + b  # TODO\n")
    subprocess.run(["git", "commit", "-qam", "Add"], cwd=project, check=True)
    printed = run("review_a_range.py")
    assert "calc.py" in printed
    assert "waves" in printed


def test_follow_events(run: Callable[..., str], model: str) -> None:
    printed = run("follow_events.py", model, "Fix the bug in calc.py")
    assert "action.confirmed" in printed
    assert "'modified_files': 1" in printed


def test_approve_in_python(run: Callable[..., str], model: str) -> None:
    printed = run("approve_in_python.py", model, "Fix the bug in calc.py")
    assert "add adds now. ('calc.py',)" in printed
