"""How a project's tests are found, run and read."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from cockpit.act.command_line import CommandRefused
from cockpit.act.sandbox.bubblewrap import Sandbox
from cockpit.act.workspace import Workspace, open_workspace
from cockpit.observe.frame.test_command import detect_test_command
from cockpit.tasks.run_tests import run_tests

pytestmark = pytest.mark.slow

TEST = "import unittest\nclass T(unittest.TestCase):\n    def test_it(self): self.assertTrue({})\n"


def written(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def with_pytest() -> dict[str, str]:
    """An environment in which the interpreter that runs this is the first."""
    return {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


@pytest.mark.parametrize(
    ("files", "ends"),
    [
        ({"pytest_dot_ini": "[pytest]\n"}, ["-m", "pytest", "-q", "-p", "no:cacheprovider"]),
        ({"tests__test_a_dot_py": "def test_a(): pass\n"}, ["-q", "-p", "no:cacheprovider"]),
        ({"test_a_dot_py": TEST}, ["-m", "unittest", "discover"]),
        ({"tests__test_a_dot_py": TEST}, ["-m", "unittest", "discover", "-s", "tests"]),
        ({"go_dot_mod": "module a\n"}, ["go", "test", "./..."]),
        ({"Cargo_dot_toml": "[package]\n"}, ["cargo", "test"]),
        ({"Makefile": "all:\n\techo\ntest: all\n\techo\n"}, ["make", "test"]),
        ({"package_dot_json": json.dumps({"scripts": {"test": "jest"}})}, ["npm", "test"]),
    ],
)
def test_the_project_says_how_it_is_tested(
    files: dict[str, str], ends: list[str], tmp_path: Path
) -> None:
    found = detect_test_command(written(tmp_path, **files), with_pytest())
    assert found is not None
    assert list(found[-len(ends) :]) == ends


def test_where_nothing_tells_there_is_no_command(tmp_path: Path) -> None:
    for files in (
        {},
        {"Makefile": "testing := 1\nbuild:\n\techo\n"},
        {"package_dot_json": '{"scripts": {"test": "echo \\"Error: no test specified\\""}}'},
        {"package_dot_json": "{not json"},
        {"package_dot_json": '{"scripts": 7}'},
    ):
        assert detect_test_command(written(tmp_path, **files), with_pytest()) is None


async def ground(root: Path) -> Workspace:
    return await open_workspace(root, environment=dict(os.environ))


async def test_a_run_is_read(tmp_path: Path) -> None:
    here = await ground(written(tmp_path, test_a_dot_py=TEST.format("True")))
    ran = await run_tests(here, tmp_path, None, "all")
    assert (ran.status, ran.results and ran.results["passed"]) == ("passed", 1)
    written(tmp_path, test_a_dot_py=TEST.format("False"))
    ran = await run_tests(here, tmp_path, None, "all")
    assert ran.status == "failed"
    assert ran.results is not None
    assert ran.results["failing_test"] == "test_a.T.test_it"
    assert "AssertionError" in ran.output


async def test_the_configured_command_comes_first(tmp_path: Path) -> None:
    here = await ground(written(tmp_path, test_a_dot_py=TEST.format("False")))
    ran = await run_tests(here, tmp_path, "true", "all")
    assert (ran.status, ran.argv) == ("passed", ("true",))
    with pytest.raises(CommandRefused):
        await run_tests(here, tmp_path, "true | false", "all")


async def test_a_program_that_is_not_there_is_no_failing_test(tmp_path: Path) -> None:
    ran = await run_tests(await ground(tmp_path), tmp_path, "no-such-program --all", "all")
    assert ran.status == "refused"
    assert "no program 'no-such-program' here" in ran.summary
    assert "[work] test_command" in ran.summary


async def test_without_a_command_nothing_is_claimed(tmp_path: Path) -> None:
    ran = await run_tests(await ground(tmp_path), tmp_path, None, "all")
    assert (ran.status, ran.argv) == ("none", ())


async def test_without_a_sandbox_only_a_person_lets_them_run(tmp_path: Path) -> None:
    here = replace(await ground(tmp_path), sandbox=Sandbox(None, None, "it is not installed"))
    ran = await run_tests(here, tmp_path, "true", "reads")
    assert ran.status == "refused"
    assert "--approve all" in ran.summary
    assert (await run_tests(here, tmp_path, "true", "all")).status == "passed"
