"""Roles are files that layer, give the only tools there are, and keep a fixer off the tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from tasks.taskrun_world import NOTES, World, turn

from cockpit.access.confined_paths import Confined
from cockpit.act.guards.action_guard import GuardState
from cockpit.act.model_tools import parse_call
from cockpit.act.protected_tests import TestsGuard, is_test
from cockpit.loop.intake.roles import ROLES, load_roles

pytestmark = pytest.mark.slow


def written(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "mine.md").write_text(text, encoding="utf-8")
    return folder.parent


def test_every_role_comes_with_the_program() -> None:
    found = load_roles(None, None).roles
    assert set(found) == set(ROLES)
    assert found["fixer"].protects_tests
    assert found["spec_reviewer"].tools == found["quality_reviewer"].tools
    assert set(found["spec_reviewer"].tools) == {"request_context", "finish"}
    for role in found.values():
        told = role.words({"task": "T-1", "title": "{title} stays"})
        assert f"ou are the {role.name.replace('_', ' ')}" in told
    assert "{title} stays" in found["fixer"].words({"title": "{title} stays"})


def test_a_persons_file_overrides_field_by_field(tmp_path: Path) -> None:
    user = written(tmp_path / "user" / "roles", '+++\nname = "fixer"\nmax_waves = 50\n+++\n')
    fixer = load_roles(None, user).roles["fixer"]
    assert (fixer.max_waves, fixer.protects_tests, fixer.source_layer) == (50, True, "user")
    assert "Fix the cause" in fixer.template


@pytest.mark.parametrize(
    ("field", "named"),
    [
        ("max_waves = 50", "max_waves"),
        ("protects_tests = false", "protects_tests"),
        ('tools = ["github", "finish"]', "tools"),
        ("max_tokens = 900000000", "max_tokens"),
    ],
)
def test_a_projects_file_may_only_tighten(field: str, named: str, tmp_path: Path) -> None:
    folder = tmp_path / ".cockpit" / "roles"
    written(folder, f'+++\nname = "fixer"\n{field}\n+++\n')
    loaded = load_roles(tmp_path, None)
    assert f"may not loosen `{named}`" in loaded.problems[0]
    assert loaded.roles == load_roles(None, None).roles
    written(folder, '+++\nname = "fixer"\nmax_waves = 2\ntools = ["edit_file", "finish"]\n+++\n')
    assert load_roles(tmp_path, None).roles["fixer"].max_waves == 2


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('+++\nname = "boss"\n+++\n', "`name` is 'boss'"),
        ('+++\nname = "fixer"\nspeed = 1\n+++\n', "unknown field `speed`"),
        ('+++\nname = "fixer"\nmax_waves = 0\n+++\n', "1 or more"),
        ('+++\nname = "fixer"\ntools = ["edit_file"]\n+++\n', "needs `finish`"),
        ('+++\nname = "fixer"\ntools = ["sudo", "finish"]\n+++\n', "no tool `sudo`"),
        ('+++\nname = "fixer"\n+++\nMind {mood}.', "unknown placeholder {mood}"),
        ("+++\nname = \n+++\n", "is not TOML"),
    ],
)
def test_a_file_that_is_none_is_named(text: str, says: str, tmp_path: Path) -> None:
    user = written(tmp_path / "roles", text)
    loaded = load_roles(None, user)
    (problem,) = loaded.problems
    assert says in problem
    assert "mine.md" in problem
    assert loaded.roles == load_roles(None, None).roles


def test_a_projects_links_are_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    written(elsewhere, '+++\nname = "fixer"\nmax_waves = 1\n+++\n')
    (tmp_path / ".cockpit").mkdir()
    (tmp_path / ".cockpit" / "roles").symlink_to(elsewhere)
    assert "is a link" in load_roles(tmp_path, None).problems[0]


async def test_a_reviewer_is_not_offered_what_it_may_not_call(world: World) -> None:
    scenario = (
        NOTES
        + turn("spec reviewer", "write_file", 'path = "x.py", content = "x"')
        + turn(
            "spec reviewer",
            "finish",
            'status = "done", summary = "VERDICT: FAIL"',
            when="wave_from = 2",
        )
    )
    task_id = world.task(task_type="docs")
    (world.root / "test_calc.py").unlink()
    await world.do(scenario, task_id, work=type(world.work)(test_command="true"))
    refused = world.rows("model.malformed_call")
    assert refused
    assert "is not a tool of this task" in refused[0].raw_detail()["message"]
    assert not (Path(world.tree(task_id).path) / "x.py").exists()


def test_a_test_is_known_by_its_name() -> None:
    for path in (
        *("tests/helper.py", "test_a.py", "src/a_test.go", "a.test.ts", "a.spec.js", "conftest.py"),
        *("app/__tests__/a.js", "src/test/java/ATest.java", "spec/a_spec.rb", "pytest.ini"),
        *(".gitignore", "unittest/__init__.py", "src/pytest.py"),
        *("package.json", "Makefile", "jest.config.js", "./sub/../tests/x.txt", "FooTests.cs"),
    ):
        assert is_test(path), path
    for path in ("calc.py", "src/contest.py", "latest.py", "attestation/a.py", "docs/testing.md"):
        assert not is_test(path), path


@pytest.mark.parametrize(
    ("name", "arguments", "refused"),
    [
        ("write_file", '{"path": "tests/a.py", "content": ""}', True),
        ("edit_file", '{"path": "link.py", "old": "a", "new": "b"}', True),
        ("write_file", '{"path": "a.py", "content": ""}', False),
        ("run", '{"argv": ["rm", "-rf", "tests"], "reason": "x"}', True),
        ("run", '{"argv": ["sed", "-i", "s/a/b/", "test_a.py"], "reason": "x"}', True),
        ("run", '{"argv": ["git", "checkout", "HEAD", "test_a.py"], "reason": "x"}', True),
        ("run", '{"argv": ["pytest", "tests/test_a.py"], "reason": "x"}', False),
        ("run", '{"argv": ["rm", "a.py"], "reason": "x"}', False),
    ],
)
def test_the_guard_turns_back_what_touches_a_test(
    name: str, arguments: str, refused: bool, tmp_path: Path
) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "a.py").write_text("a", encoding="utf-8")
    (tmp_path / "link.py").symlink_to("tests/a.py")
    guard = TestsGuard(Confined(tmp_path))
    found = guard.check(parse_call(name, arguments), GuardState())
    assert (found is not None) == refused
