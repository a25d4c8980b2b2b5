"""The examples of ``docs/examples`` run as they are, each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from state_for_tests import state_of

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"


def _run(project: Path, name: str, *arguments: str, start: Sequence[str] = ()) -> str:
    done = subprocess.run(
        [*(start or (sys.executable,)), str(EXAMPLES / name), *arguments],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(EXAMPLES.parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_example_is_tried_here() -> None:
    names = {path.name for path in EXAMPLES.glob("*.py")}
    assert names == {"review_a_range.py", "approve_in_python.py", "follow_events.py"}


def test_review_a_range(project: Path) -> None:
    (project / "calc.py").write_text("def add(a, b):\n    return a + b  # TODO\n")
    subprocess.run(["git", "commit", "-qam", "Add"], cwd=project, check=True)
    printed = _run(project, "review_a_range.py")
    assert "calc.py" in printed
    assert "waves" in printed


def test_follow_events(project: Path, model: str) -> None:
    printed = _run(project, "follow_events.py", model, "Fix the bug in calc.py")
    assert "action.confirmed" in printed
    assert "'modified_files': 1" in printed


def test_approve_in_python_is_refused_below_an_agent(
    project: Path, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDECODE", "1")
    with pytest.raises(AssertionError, match="to approve by a callback is for you alone"):
        _run(
            project,
            *("approve_in_python.py", model, "Fix the bug in calc.py"),
            start=[sys.executable],  # from nothing: it is judged as on a user's machine
        )
    assert not (state_of(project) / "cockpit.db").exists()


def test_approve_in_python(
    project: Path, model: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # In this process, whose user the tests stand for: the suite itself may run below an agent.
    monkeypatch.chdir(project)
    monkeypatch.setattr(sys, "argv", ["approve_in_python.py", model, "Fix the bug in calc.py"])
    source = (EXAMPLES / "approve_in_python.py").read_text()
    exec(compile(source, "approve_in_python.py", "exec"), {"__name__": "__main__"})
    assert "add adds now. ('calc.py',)" in capsys.readouterr().out
