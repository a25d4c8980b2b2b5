"""A change that takes the tests away passes no tests, and reviewers hear of one that is next to nothing."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cockpit.tasks.git import compare_commits
from cockpit.tasks.work_done import count_tests, describe_slight_change, find_lost_tests

TESTS = "def test_one():\n    assert True\n\n\ndef test_two():\n    assert True\n"


def git(root: Path, *words: str) -> str:
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    done = subprocess.run(["git", *who, *words], cwd=root, check=True, capture_output=True)
    return done.stdout.decode().strip()


def commit(root: Path) -> str:
    git(root, "add", "-A")
    git(root, "commit", "-qm", "Change")
    return git(root, "rev-parse", "HEAD")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "__init__.py").write_text("")
    (tmp_path / "tests" / "test_a.py").write_text(TESTS)
    (tmp_path / "a.py").write_text("a = 1\n")
    return tmp_path


async def lost(root: Path, base: str) -> str:
    return await find_lost_tests(
        root, base, (await compare_commits(root, base, commit(root))).names
    )


async def test_the_only_tests_are_missed_and_those_beside_others_are_not(root: Path) -> None:
    base = commit(root)
    (root / "tests" / "test_a.py").unlink()
    assert "all of the project's tests (tests/test_a.py)" in await lost(root, base)
    (root / "tests" / "test_b.py").write_text(TESTS)
    assert await lost(root, base) == ""
    base = commit_more(root)
    (root / "tests" / "test_c.py").unlink()
    assert await lost(root, base) == ""


def commit_more(root: Path) -> str:
    (root / "tests" / "test_c.py").write_text(TESTS)
    return commit(root)


async def test_a_module_that_lost_all_of_its_tests_is_named(root: Path) -> None:
    base = commit_more(root)
    (root / "tests" / "test_a.py").write_text("# nothing\n")
    assert await lost(root, base) == "tests/test_a.py had 2 tests and has none any more."


@pytest.mark.parametrize(
    ("write", "expected"),
    [
        (lambda root: (root / "a.py").chmod(0o755), "a file's mode"),
        (lambda root: (root / "empty").write_text(""), "an empty file"),
        (lambda root: (root / "a.py").write_text("a = 1\n# done\n"), "comments"),
        (lambda root: (root / "a.py").write_text("a = 2\n"), ""),
    ],
)
async def test_a_change_that_is_next_to_nothing_is_described(root: Path, write, expected) -> None:
    base = commit(root)
    write(root)
    change = await compare_commits(root, base, commit(root))
    assert describe_slight_change(change) == expected


@pytest.mark.parametrize(
    "text",
    [
        "it('adds', () => {})",
        "func TestAdd(t *testing.T) {",
        "#[test]\nfn adds() {}",
        "  @Test\n  void adds() {}",
        "TEST(Add, Works) {",
        "    async def test_add(self):",
    ],
)
def test_tests_of_many_languages_are_counted(text: str) -> None:
    assert count_tests(text.encode()) == 1
