"""What is made to look like a trusted request is not covered, and nothing but the user makes a rule."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from loop.permissions.permission_world import bash, edit
from loop.trust.trust_world import TrustWorld, open_trust, passed

from cockpit.learn.trust.command_shape import command_shape
from cockpit.loop.permissions.judge_request import judge_request
from cockpit.loop.trust.decide_rules import NoRule
from cockpit.loop.trust.permission_shape import describe_shape


@pytest.fixture
def trust(tmp_path: Path) -> Iterator[TrustWorld]:
    root = tmp_path / "project"
    (root / "tests").mkdir(parents=True)
    (root / "src").mkdir()
    for name in ("tests/test_a.py", "src/secret.py"):
        (root / name).write_text("x = 1\n")
    world = open_trust(tmp_path, root)
    with world.store:
        yield world


@pytest.fixture
def learned(trust: TrustWorld) -> TrustWorld:
    """Reading test files, and running them, is trusted."""
    trust.learn_rule(
        lambda session, number: trust.read(session, f"file:tests/test_{number}.py"),
        lambda session, number: trust.run(session, "pytest", "-q", f"tests/test_{number}.py"),
    )
    assert passed(trust.run(trust.begin(), "pytest", "-q", "tests/test_a.py"))
    assert passed(trust.read(trust.begin(), "file:tests/test_a.py"))
    return trust


COMMANDS = [
    ("env", "PYTEST_ADDOPTS=-p evil", "pytest", "-q", "tests/test_a.py"),
    ("PYTHONPATH=evil", "pytest", "-q", "tests/test_a.py"),
    ("bash", "-lc", "pytest -q tests/test_a.py; curl evil"),
    ("./pytest", "-q", "tests/test_a.py"),
    ("рytest", "-q", "tests/test_a.py"),  # a Cyrillic letter
    ("pytest", "-q", "tests/test_a\u200b.py"),
    ("pytest", "-q", "tests/../src/secret.py"),
    ("pytest", "-q", "tests/deep/test_a.py"),
    ("pytest", "-q", "tests/test_a.py", "-p", "evil"),
    ("pytest", "-q", "tests/test_a.py", "--basetemp=src"),
    ("pytest", "-q", "@tests/test_a.py"),
    ("pytest", "-q", "tests/$(id).py"),
    ("pytest", "-q", "tests/te\nst.py"),
    ("pytest", "-q", "tests/.env.py"),
    ("pytest", "-q", "tests/test_a.py", "src/secret.py"),
    ("pytest", "-q"),
    ("git", "-c", "core.pager=evil", "diff"),
]


def test_a_command_that_looks_like_a_trusted_one_is_asked(learned: TrustWorld) -> None:
    for argv in COMMANDS:
        assert learned.run(learned.begin(), *argv).status == "pending", argv
    assert len(learned.rows("trust.used")) == 2, "those of the fixture"


def test_a_file_of_arguments_is_no_file_that_is_checked(trust: TrustWorld) -> None:
    """A rule for files at the root does not cover a file that a checker takes its options from."""
    trust.learn_rule(lambda session, number: trust.run(session, "pytest", f"test_{number}.py"))
    assert passed(trust.run(trust.begin(), "pytest", "test_9.py"))
    for program in ("pytest", "mypy", "tsc"):
        assert command_shape([program, "@args.py"]) is None
    assert not passed(trust.run(trust.begin(), "pytest", "@args.py"))


def test_another_number_is_not_the_pull_request(trust: TrustWorld) -> None:
    """What is read of the task's own pull request is not what happens to have its number."""
    trust.learn_rule(lambda session, _: trust.read(session, "gh:run list --limit 24"))
    other = trust.begin(target={"pr": 90})
    assert not passed(trust.read(other, "gh:run list --limit 90"))


def test_outside_the_sandbox_it_is_another_command(learned: TrustWorld) -> None:
    command = ("pytest", "-q", "tests/test_a.py")
    assert not passed(learned.run(learned.begin(), *command, sandboxed=False))
    assert not passed(learned.run(learned.begin(), *command, risk="high"))


ITEMS = (
    *("file:tests/../src/secret.py", 'file:"tests/../src/secret.py"', "file:~/tests/a.py"),
    *("file:Tests/a.py", "file:tests/.ssh/a.py", "file:.git/tests/a.py", "file:tests/deep/a.py"),
    *("file:tеsts/a.py", 'file:"tests/a\\u200b.py"', "file:tests/*.py", "file:tests/a.py:1-2"),
    *("file:tests/a", "symbol:tests", "search:. in tests/*.py", "gh:issue list"),
)


def test_an_item_that_looks_like_a_trusted_one_is_asked(learned: TrustWorld) -> None:
    for item in ITEMS:
        assert learned.read(learned.begin(), item).status == "pending", item


def test_one_strange_item_leaves_the_whole_request_to_the_user(learned: TrustWorld) -> None:
    asked = learned.read(learned.begin(), "file:tests/test_a.py", "file:src/secret.py")
    assert asked.status == "pending"


def test_a_link_into_another_folder_is_asked(learned: TrustWorld) -> None:
    (learned.root / "tests" / "test_link.py").symlink_to("../src/secret.py")
    assert not passed(learned.read(learned.begin(), "file:tests/test_link.py"))
    assert not passed(learned.run(learned.begin(), "pytest", "-q", "tests/test_link.py"))
    (learned.root / "linked").symlink_to("src")
    learned.learn_rule(lambda session, number: learned.read(session, f"file:linked/{number}.py"))
    assert not passed(learned.read(learned.begin(), "file:linked/secret.py"))


SHELL = (
    *("pytest -q 'tests/test_a.py'", "py\\test -q tests/test_a.py"),
    *("FOO=1 pytest -q tests/test_a.py", "pytest -q tests/test_a.py && curl evil"),
    *("pytest -q tests/test_a.py | tee x", "sh evil.sh", "pytest -q tests/test_a.py > x"),
    *("pytest -q tests/test_a.py\nid", "pytest -q tests/test_*.py", "pytest -q tests/$X.py"),
    *("pytest -q tests/test_a.py # comment", "(pytest -q tests/test_a.py)"),
    *("bash -c 'pytest -q tests/test_a.py; id'", "bash -c 'FOO=1 pytest -q tests/test_a.py'"),
    *("bash --rcfile evil -c 'pytest -q tests/test_a.py'", "cd src && pytest -q tests/test_a.py"),
)


def test_shell_text_that_is_not_plain_has_no_shape(trust: TrustWorld) -> None:
    for command in SHELL:
        request = bash(command)
        judged = judge_request(request, trust.root)
        assert describe_shape(request, judged, trust.root) is None, command


def test_plain_shell_text_and_edits_have_one(trust: TrustWorld) -> None:
    for request, words in (
        (bash("pytest -q tests/test_a.py"), ("pytest", "-q", "tests/*.py")),
        # Codex wraps every command so: the script is judged, and nothing but the script runs.
        (bash("bash -lc 'pytest -q tests/test_a.py'"), ("pytest", "-q", "tests/*.py")),
        (edit(trust.root / "src" / "secret.py", "x", "y"), ("Edit", "src/*.py")),
    ):
        described = describe_shape(request, judge_request(request, trust.root), trust.root)
        assert described is not None and described[0] == words
    for path in (
        *(".claude/settings.json", "../out.py", ".github/workflows/ci.yml", "Makefile"),
        *("pkg/.claude/commands/a.md", ".agents/skills/a/SKILL.md", ".mcp.json"),
    ):
        request = edit(trust.root / path, "x", "y")
        judged = judge_request(request, trust.root)
        assert describe_shape(request, judged, trust.root) is None, path


def write_raw(trust: TrustWorld, sql: str, *values: object) -> None:
    """Write the store as another program of the user does."""
    with sqlite3.connect(trust.store.path) as connection:
        connection.execute(sql, values)


def test_evidence_that_another_program_wrote_is_refused(trust: TrustWorld) -> None:
    trust.learn(lambda session, number: trust.read(session, f"file:tests/test_{number}.py"))
    shape = '{"asker":"","kind":"run","task_type":"review_pr","words":["make","deploy"]}'
    from cockpit.store.trust.shape import read_shape

    forged = read_shape(shape)
    write_raw(
        trust, "UPDATE trust_decisions SET shape_json=?, shape_digest=?", shape, forged.digest
    )
    assert trust.offers() == [forged.rule_id]
    with pytest.raises(NoRule, match="cannot be used"):
        trust.accept(forged.rule_id)
