"""Reading test runs: what each runner really printed, recorded or run here."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cockpit.access.shell_commands import list_commands
from cockpit.learn.test_output import TestResults as Results
from cockpit.learn.test_output import read_tests
from cockpit.learn.test_runners import test_commands as list_test_commands

pytestmark = pytest.mark.slow

RECORDED = Path(__file__).resolve().parents[2] / "data" / "test_output"
FAILS = """
import pytest, unittest
def test_adds(): assert 1 + 2 == 3
def test_adds_below_zero(): assert -1 - 2 == 3
def test_with_a_fixture(missing): pass
@pytest.mark.skip
def test_words(): pass
@pytest.mark.xfail
def test_not_yet(): assert False
class TestGroup:
    @pytest.mark.parametrize("n", [1, 2])
    def test_even(self, n): assert n % 2 == 0
"""
UNITTEST = """
import unittest
class Sums(unittest.TestCase):
    def test_adds(self): self.assertEqual(1 + 2, 3)
    def test_adds_below_zero(self): self.assertEqual(-1 - 2, 3)
    def test_breaks(self): raise ValueError("broken")
    @unittest.skip("not yet")
    def test_words(self): pass
    @unittest.expectedFailure
    def test_not_yet(self): self.fail()
"""


GO, BELOW = "example.org/sample/sum: TestAddsBelowZero/both", "adds below zero"
RUNS = [
    ("mocha-pass", "npx mocha ok.js", 0, ("tests", 1, 0, 0), ""),
    ("mocha-fail", "npm test", 1, ("tests", 1, 1, 1), f"sum › below zero › {BELOW}"),
    ("jest-fail", "npx jest", 1, ("tests", 2, 1, 1), f"jest/sum.test.js: sum › {BELOW}"),
    ("jest-broken", "npx jest", 1, ("", 0, 0, 0), "jest/broken.test.js"),
    ("vitest-fail", "npx vitest run vt", 1, ("tests", 2, 1, 1), f"vt/sum.test.mjs > sum > {BELOW}"),
    ("node-fail-tap", "node --test nodet/", 1, ("tests", 2, 1, 1),
     f"/home/dev/sample/js/nodet/sum.test.js:5: {BELOW}"),
    ("node-fail-spec", "node --test --test-reporter=spec nodet/", 1, ("tests", 2, 1, 1),
     f"nodet/sum.test.js:5: {BELOW}"),
    ("go-pass", "go test ./ok", 0, ("packages", 1, 0, 0), ""),
    ("go-fail", "go test ./sum ./ok", 1, ("packages", 1, 1, 0), GO),
    ("go-fail-v", "go test -v ./sum ./ok", 1, ("tests", 2, 1, 1), GO),
    ("go-fail-json", "go test -json ./sum ./ok", 1, ("tests", 2, 1, 1), GO),
    ("go-broken", "go test ./broken ./ok", 1, ("packages", 1, 1, 0), "example.org/sample/broken"),
    ("cargo-fail", "cargo test", 101, ("tests", 1, 1, 1), "tests::adds_below_zero"),
    ("cargo-broken", "cargo test", 101, ("", 0, 0, 0), ""),
    ("tape-fail", "npx tape tp/sum.test.js", 1, ("tests", 1, 1, 0), "sums"),
    ("tap-fail", "npx tap tapt/sum.test.js", 1, ("tests", 1, 1, 1), "should be equal"),
    ("ava-fail", "npx ava ava_t/sum.test.mjs", 1, ("tests", 1, 1, 1), BELOW),
    ("jasmine-fail", "npx jasmine jas/sum.spec.js", 3, ("tests", 1, 1, 1), f"sum {BELOW}"),
    ("bun-fail", "bun test ./bunt", 1, ("tests", 1, 1, 1), BELOW),
    ("deno-fail", "deno test dn/", 1, ("tests", 1, 1, 1), BELOW),
    ("ctest-fail", "ctest", 8, ("tests", 2, 1, 0), "bad"),
    ("prove-fail", "prove t", 1, ("tests", 3, 1, 0), "t/a.t"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "command", "code", "counts", "first"), RUNS)
def test_the_recorded_output_of_a_runner_is_read(name, command, code, counts, first) -> None:
    output = (RECORDED / f"{name}.txt").read_text(encoding="utf-8")
    coloured = "\n".join(f"\x1b[0m{line}\x1b[39m\r" for line in output.split("\n"))
    piped = f"cd sample && {command} 2>&1 | tail -200"
    for ran, printed, ended in (
        (command, output, code), (piped, output, 0), (command, coloured, code),
    ):  # fmt: skip
        results = read_tests(ran, printed, ended)
        assert results is not None
        assert (results.counted, results.passed, results.failed, results.skipped) == counts
        assert (results.failing_test, results.runner) == (first, name.split("-")[0])
        assert results.outcome == ("pass" if "pass" in name else "fail")
        assert results.ran is bool(counts[0])


def test_a_deeply_nested_line_of_go_does_not_end_the_reading() -> None:
    events = ['{"Action": "pass", "Package": "p", "Test": "TestAdds"}', '{"a":' * 100_000]
    results = read_tests("go test -json ./...", "\n".join(events), 0)
    assert results is not None
    assert results.passed == 1


@pytest.mark.parametrize(("style", "expected"), [("-x", (1, 1, 0)), ("-v", (2, 3, 2))])
def test_pytest_is_read_as_it_runs(tmp_path: Path, style: str, expected: tuple[int, ...]) -> None:
    (tmp_path / "test_sums.py").write_text(FAILS, encoding="utf-8")
    words = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", style]
    done = run(tmp_path, words)
    results = read_tests(words, done.stdout, done.returncode)
    assert results is not None
    kind = (results.runner, results.ran, results.outcome, results.counted)
    assert kind == ("pytest", True, "fail", "tests")
    assert results.failing_test == "test_sums.py::test_adds_below_zero"
    assert (results.passed, results.failed, results.skipped) == expected


def test_unittest_is_read_as_it_runs(tmp_path: Path) -> None:
    (tmp_path / "sums.py").write_text(UNITTEST, encoding="utf-8")
    script = "import unittest; unittest.main('sums')"
    for runner, words in (
        ("unittest", ["-m", "unittest", "sums", "-v"]),
        ("script", ["-c", script]),
    ):
        done = run(tmp_path, [sys.executable, *words])
        results = read_tests([sys.executable, *words], done.stdout, done.returncode)
        assert results is not None
        assert (results.runner, results.counted, results.outcome) == (runner, "tests", "fail")
        assert (results.passed, results.failed, results.skipped) == (1, 2, 2)
        assert results.failing_test.split(".")[-1] in ("test_breaks", "test_adds_below_zero")
    assert read_tests("cat log.txt", done.stdout, 0) is None


NO_PYTEST = "python: No module named pytest\n"
UNCOVERED = "FAIL Required test coverage of 90% not reached.\n=== 2 passed in 0.1s ===\n"


@pytest.mark.parametrize(
    ("command", "output", "code", "expected"),
    [
        ("pytest", "no tests ran in 0.01s\n", 5, Results("pytest", False, "fail")),
        ("pytest", "ERROR test_it.py\n=== 1 error in 0.05s ===\n", 2,
         Results("pytest", True, "fail", "tests", failed=1, failing_test="test_it.py")),
        ("make test", "gcc -o t t.c\n./t\n", 0, Results("make", True, "pass")),
        ("make test", "make: *** [test] Error 1\n", 2, Results("make", True, "fail")),
        ("./run_tests.sh", "ok\n", 0, Results("script", True, "pass")),
        ("bundle exec rspec", "Finished.\n", 0, Results("rspec", True, "pass")),
        ("python test_it.py | tail -3", "fine\n", 0, Results("script", True, "unknown")),
        ("python -m pytest | tail", NO_PYTEST, 0, Results("pytest", False, "fail")),
        ("npm test", 'npm error Missing script: "test"\n', 1, Results("npm", False, "fail")),
        ("pytest; echo done", "=== 2 passed in 0.1s ===\ndone\n", 0,
         Results("pytest", True, "pass", "tests", 2)),
        ("pytest --cov", UNCOVERED, 1, Results("pytest", True, "fail", "tests", 2)),
    ],
)  # fmt: skip
def test_an_unknown_runner_tells_only_pass_or_fail_and_a_cut_output_what_it_can(
    command, output, code, expected
) -> None:
    assert read_tests(command, output, code) == expected


@pytest.mark.parametrize(
    ("command", "runner"),
    [
        ("pytest -q", "pytest"),
        ("cd a && timeout 60 env A=1 python3.12 -W error -m pytest x::y", "pytest"),
        ("uv run --frozen pytest", "pytest"),
        ("bash -lc 'pytest -q'", "pytest"),
        (["bash", "-lc", "go test ./..."], "go"),
        ("coverage run -m pytest", "pytest"),
        ("python manage.py test app", "unittest"),
        ("yarn jest", "jest"),
        ("pnpm run test:unit", "pnpm"),
        ("cargo +nightly test --release", "cargo"),
        ("./gradlew test", "gradle"),
        ("python final_test.py", "script"),
        ("node sum.test.js", "script"),
        ("pip install pytest", None),
        ("grep -rn pytest .", None),
        ("pytest --collect-only -q", None),
        ("cargo build", None),
        ("npm run build", None),
        ("python latest.py", None),
        ("git commit -m 'run pytest'", None),
        ("", None),
    ],
)
def test_which_commands_are_test_runs(command, runner) -> None:
    runs = list_test_commands(list_commands(command))
    assert (runs[0][1] if runs else None) == runner


def run(folder: Path, words: list[str]) -> subprocess.CompletedProcess[str]:
    # A pytest that is started here reads none of this project's plugins, and its temporary files are its own.
    own = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_DEBUG_TEMPROOT": str(folder)}
    return subprocess.run(
        words,
        cwd=folder,
        env={**os.environ, **own},
        text=True,
        timeout=120,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )


@pytest.mark.parametrize(
    ("command", "line", "counts"),
    [
        ("bundle exec rspec", "5 examples, 2 failures, 1 pending", (2, 2, 1)),
        ("vendor/bin/phpunit", "OK (3 tests, 4 assertions)", (3, 0, 0)),
        ("phpunit", "Tests: 5, Assertions: 4, Errors: 1, Failures: 1, Skipped: 1.", (2, 2, 1)),
        ("rake test", "4 runs, 4 assertions, 1 failures, 1 errors, 0 skips", (2, 2, 0)),
        ("mvn test", "[ERROR] Tests run: 4, Failures: 1, Errors: 0, Skipped: 1", (2, 1, 1)),
        ("dotnet test", "Failed!  - Failed:     1, Passed:     3, Skipped:     0", (3, 1, 0)),
        ("bun test", " 3 pass\n 1 fail", (3, 1, 0)),
        ("deno test", "FAILED | 2 passed | 1 failed (5ms)", (2, 1, 0)),
        ("npx tape test.js", "# tests 3\n# pass  2\n# fail  1", (2, 1, 0)),
        ("ctest", "67% tests passed, 1 tests failed out of 3", (2, 1, 0)),
    ],
)
def test_a_summary_tells_where_a_pipe_hides_the_exit_code(command, line, counts) -> None:
    read = read_tests(f"{command} 2>&1 | tail -5", f"words\n{line}\n", 0)
    assert read is not None
    assert (read.passed, read.failed, read.skipped) == counts
    assert read.outcome == ("fail" if counts[1] else "pass")
