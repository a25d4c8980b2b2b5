"""What is shown is what runs: files that a command runs by name, and the project where it runs its code."""

from __future__ import annotations

from pathlib import Path

import pytest

from cockpit.access.confined_paths import Confined
from cockpit.act.named_scripts import digest_tree, find_scripts, why_changed


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in (
        *(
            ("build.sh", "echo build\n"),
            ("tool.py", "print(1)\n"),
            ("Makefile", "all:\n\techo x\n"),
        ),
        *(("package.json", '{"scripts": {"test": "x"}}\n'), ("test_a.py", "def test_a(): ...\n")),
    ):
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("line", "named"),
    [
        (("sh", "build.sh"), ["build.sh"]),
        (("python3", "tool.py", "x"), ["tool.py"]),
        (("bash", "-c", "cd . && sh build.sh; python tool.py"), ["build.sh", "tool.py"]),
        (("env", "X=1", "./build.sh"), ["build.sh"]),
        (("make", "-s"), ["Makefile"]),
        (("npm", "test"), ["package.json"]),
        (("pytest", "-q"), []),
        (("python", "-m", "unittest"), []),
    ],
)
def test_the_proposal_says_what_runs(root: Path, line: tuple[str, ...], named: list[str]) -> None:
    scripts = find_scripts(line, Confined(root))
    assert [script.path for script in scripts.present] == named
    (note,) = scripts.notes()
    assert "what the project's tests and scripts say" in note and scripts.tree[:16] in note


def test_a_command_without_code_of_the_project_says_nothing(root: Path) -> None:
    assert find_scripts(("mkdir", "x"), Confined(root)).notes() == []


def test_another_content_is_another_command(root: Path) -> None:
    pins = find_scripts(("sh", "build.sh"), Confined(root)).pins()
    assert why_changed(pins, Confined(root)) == ""
    (root / "build.sh").write_text("rm -rf .\n")
    assert "has changed since it was shown" in why_changed(pins, Confined(root))


def test_a_file_that_appears_or_changes_is_another_tree(root: Path) -> None:
    before = digest_tree(str(root))
    assert digest_tree(str(root)) == before
    (root / "conftest.py").write_text("x\n")
    appeared = digest_tree(str(root))
    (root / "conftest.py").write_text("y\n")
    assert len({before, appeared, digest_tree(str(root))}) == 3
