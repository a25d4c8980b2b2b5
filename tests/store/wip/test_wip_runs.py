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


@pytest.mark.parametrize(
    ("name", "command", "code", "counts", "first"),
    [
        ("mocha-pass", "npx mocha ok.js", 0, ("tests", 1, 0, 0), ""),
        ("mocha-fail", "npm test", 1, ("tests", 1, 1, 1), "sum › below zero › adds below zero"),
        ("jest-pass", "npx jest jest/ok.test.js", 0, ("tests", 1, 0, 0), ""),
        (
            "jest-fail",
            "npx jest",
            1,
            ("tests", 2, 1, 1),
            "jest/sum.test.js: sum › adds below zero",
        ),
        ("jest-broken", "npx jest", 1, ("", 0, 0, 0), "jest/broken.test.js"),
        ("vitest-pass", "npx vitest run vt/ok", 0, ("tests", 1, 0, 0), ""),
        (
            "vitest-fail",
            "npx vitest run vt",
            1,
            ("tests", 2, 1, 1),
            "vt/sum.test.mjs > sum > adds below zero",
        ),
        ("node-pass-tap", "node --test nodet/ok.test.js", 0, ("tests", 1, 0, 0), ""),
        (
            "node-fail-tap",
            "node --test nodet/",
            1,
            ("tests", 2, 1, 1),
            "/home/dev/sample/js/nodet/sum.test.js:5: adds below zero",
        ),
        (
            "node-fail-spec",
            "node --test --test-reporter=spec nodet/",
            1,
            ("tests", 2, 1, 1),
            "nodet/sum.test.js:5: adds below zero",
        ),
        ("go-pass", "go test ./ok", 0, ("packages", 1, 0, 0), ""),
        ("go-pass-v", "go test -v ./ok", 0, ("tests", 1, 0, 0), ""),
        (
            "go-fail",
            "go test ./sum ./ok",
            1,
            ("packages", 1, 1, 0),
            "example.org/sample/sum: TestAddsBelowZero/both",
        ),
        (
            "go-fail-v",
            "go test -v ./sum ./ok",
            1,
            ("tests", 2, 1, 1),
            "example.org/sample/sum: TestAddsBelowZero/both",
        ),
        (
            "go-fail-json",
            "go test -json ./sum ./ok",
            1,
            ("tests", 2, 1, 1),
            "example.org/sample/sum: TestAddsBelowZero/both",
        ),
        (
            "go-broken",
            "go test ./broken ./ok",
            1,
            ("packages", 1, 1, 0),
            "example.org/sample/broken",
        ),
        ("cargo-pass", "cargo test --test whole", 0, ("tests", 1, 0, 0), ""),
        ("cargo-fail", "cargo test", 101, ("tests", 1, 1, 1), "tests::adds_below_zero"),
        (
            "cargo-fail-all",
            "cargo test --no-fail-fast",
            101,
            ("tests", 2, 1, 1),
            "tests::adds_below_zero",
        ),
        ("cargo-broken", "cargo test", 101, ("", 0, 0, 0), ""),
        ("tape-pass", "npx tape tp_ok/ok.test.js", 0, ("tests", 1, 0, 0), ""),
        ("tape-fail", "npx tape tp/sum.test.js", 1, ("tests", 1, 1, 0), "sums"),
        ("tap-pass", "npx tap tapt_ok/ok.test.js", 0, ("tests", 1, 0, 0), ""),
        ("tap-fail", "npx tap tapt/sum.test.js", 1, ("tests", 1, 1, 1), "should be equal"),
        ("ava-pass", "npx ava ava_ok/ok.test.mjs", 0, ("tests", 1, 0, 0), ""),
        ("ava-fail", "npx ava ava_t/sum.test.mjs", 1, ("tests", 1, 1, 1), "adds below zero"),
        ("jasmine-pass", "npx jasmine jas_ok/ok.spec.js", 0, ("tests", 1, 0, 0), ""),
        (
            "jasmine-fail",
            "npx jasmine jas/sum.spec.js",
            3,
            ("tests", 1, 1, 1),
            "sum adds below zero",
        ),
        ("bun-pass", "bun test ./bunt_ok", 0, ("tests", 1, 0, 0), ""),
        ("bun-fail", "bun test ./bunt", 1, ("tests", 1, 1, 1), "adds below zero"),
        ("deno-pass", "deno test dn_ok/", 0, ("tests", 1, 0, 0), ""),
        ("deno-fail", "deno test dn/", 1, ("tests", 1, 1, 1), "adds below zero"),
        ("ctest-pass", "ctest", 0, ("tests", 2, 0, 0), ""),
        ("ctest-fail", "ctest", 8, ("tests", 2, 1, 0), "bad"),
        ("prove-pass", "prove t/b.t", 0, ("tests", 1, 0, 0), ""),
        ("prove-fail", "prove t", 1, ("tests", 3, 1, 0), "t/a.t"),
    ],
)
@pytest.mark.parametrize("told", ["alone", "through a pipe", "coloured"])
def test_what_a_runner_printed_is_read(name, command, code, counts, first, told) -> None:
    output = (RECORDED / f"{name}.txt").read_text(encoding="utf-8")
    if told == "through a pipe":
        command, code = f"cd sample && {command} 2>&1 | tail -200", 0
    if told == "coloured":
        output = "\n".join(f"\x1b[0m{line}\x1b[39m\r" for line in output.split("\n"))
    found = read_tests(command, output, code)
    assert found is not None
    assert (found.counted, found.passed, found.failed, found.skipped) == counts
    assert (found.failing_test, found.runner) == (first, name.split("-")[0])
    assert found.outcome == ("pass" if "pass" in name else "fail")
    assert found.ran is bool(counts[0])


def test_a_deeply_nested_line_of_go_does_not_end_the_reading() -> None:
    events = ['{"Action": "pass", "Package": "p", "Test": "TestAdds"}', '{"a":' * 100_000]
    results = read_tests("go test -json ./...", "\n".join(events), 0)
    assert results is not None
    assert results.passed == 1


@pytest.mark.parametrize("style", [(), ("-q",), ("-v",), ("-rA",), ("-x",), ("-n2",), ("--tb=no",)])
def test_pytest_is_read_as_it_runs(tmp_path: Path, style: tuple[str, ...]) -> None:
    (tmp_path / "test_sums.py").write_text(FAILS, encoding="utf-8")
    parallel: tuple[str, ...] = ()
    if style == ("-n2",):
        parallel = ("-p", "xdist.plugin")
    words = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *parallel, *style]
    done = run(tmp_path, words)
    found = read_tests(words, done.stdout, done.returncode)
    assert found is not None
    assert (found.runner, found.ran, found.outcome, found.counted) == (
        "pytest",
        True,
        "fail",
        "tests",
    )
    first = {"test_sums.py::test_adds_below_zero"}
    if style == ("-n2",):  # which of them fails first is for the two processes to settle
        first |= {"test_sums.py::TestGroup::test_even[1]", "test_sums.py::test_with_a_fixture"}
    assert found.failing_test in first
    counts = (found.passed, found.failed, found.skipped)
    assert counts == ((1, 1, 0) if style == ("-x",) else (2, 3, 2))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def test_a(): pass\n", Results("pytest", True, "pass", "tests", passed=1)),
        ("x = 1\n", Results("pytest", False, "fail")),
        (
            "import not_there\n",
            Results("pytest", True, "fail", "tests", failed=1, failing_test="test_it.py"),
        ),
    ],
)
def test_pytest_that_passes_finds_nothing_or_cannot_begin(tmp_path, text, expected) -> None:
    (tmp_path / "test_it.py").write_text(text, encoding="utf-8")
    done = run(tmp_path, [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"])
    assert read_tests("pytest", done.stdout, done.returncode) == expected


@pytest.mark.parametrize("style", [(), ("-v",), ("-q",), ("-b",)])
def test_unittest_is_read_as_it_runs(tmp_path: Path, style: tuple[str, ...]) -> None:
    (tmp_path / "sums.py").write_text(UNITTEST, encoding="utf-8")
    words = [sys.executable, "-m", "unittest", "sums", *style]
    done = run(tmp_path, words)
    found = read_tests(words, done.stdout, done.returncode)
    assert found is not None
    assert (found.passed, found.failed, found.skipped, found.counted) == (1, 2, 2, "tests")
    assert found.failing_test in ("sums.Sums.test_breaks", "sums.Sums.test_adds_below_zero")
    assert found.outcome == "fail"
    passing = run(tmp_path, [*words[:3], "sums.Sums.test_adds"])
    assert read_tests(words, passing.stdout, 0) == Results("unittest", True, "pass", "tests", 1)


def test_tests_begun_from_a_program_are_known_by_what_it_prints(tmp_path: Path) -> None:
    (tmp_path / "sums.py").write_text(UNITTEST, encoding="utf-8")
    words = [sys.executable, "-c", "import unittest; unittest.main('sums')"]
    done = run(tmp_path, words)
    found = read_tests(words, done.stdout, done.returncode)
    assert found is not None
    assert (found.runner, found.passed, found.failed) == ("script", 1, 2)
    assert read_tests("cat log.txt", done.stdout, 0) is None


@pytest.mark.parametrize(
    ("command", "output", "code", "expected"),
    [
        ("make test", "gcc -o t t.c\n./t\n", 0, Results("make", True, "pass")),
        (
            "make test",
            "assertion failed\nmake: *** [test] Error 1\n",
            2,
            Results("make", True, "fail"),
        ),
        ("./run_tests.sh", "ok\n", 0, Results("script", True, "pass")),
        ("mix test", "2 tests, 1 failure\n", 2, Results("mix", True, "fail")),
        ("bundle exec rspec", "Finished.\n", 0, Results("rspec", True, "pass")),
        ("python test_it.py | tail -3", "fine\n", 0, Results("script", True, "unknown")),
        (
            "python -m pytest 2>&1 | head -3",
            "== test session starts ==\n",
            0,
            Results("pytest", True, "unknown"),
        ),
        (
            "python -m pytest | tail",
            "python: No module named pytest\n",
            0,
            Results("pytest", False, "fail"),
        ),
        ("npm test", 'npm error Missing script: "test"\n', 1, Results("npm", False, "fail")),
        (
            "pytest; echo done",
            "=== 2 passed in 0.1s ===\ndone\n",
            0,
            Results("pytest", True, "pass", "tests", 2),
        ),
        (
            "pytest --cov",
            "FAIL Required test coverage of 90% not reached.\n=== 2 passed in 0.1s ===\n",
            1,
            Results("pytest", True, "fail", "tests", 2),
        ),
    ],
)
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
        ("python -m coverage run -m unittest", "unittest"),
        ("python manage.py test app", "unittest"),
        ("python tests/runtests.py schema", "unittest"),
        ("./manage.py test", "unittest"),
        ("yarn jest", "jest"),
        ("npm exec -- vitest run", "vitest"),
        ("pnpm run test:unit", "pnpm"),
        ("node --experimental-vm-modules --test", "node"),
        ("cargo +nightly test --release", "cargo"),
        ("./gradlew test", "gradle"),
        ("python final_test.py", "script"),
        ("node sum.test.js", "script"),
        ("sh test.sh", "script"),
        ("pip install pytest", None),
        ("grep -rn pytest .", None),
        ("cat test_it.py", None),
        ("pytest --version", None),
        ("pytest --collect-only -q", None),
        ("cargo build", None),
        ("go build ./... # go test", None),
        ("make", None),
        ("npm run build", None),
        ("python -c 'print(1)'", None),
        ("python reproduce.py", None),
        ("python latest.py", None),
        ("git commit -m 'run pytest'", None),
        ("echo 'pytest'", None),
        ("", None),
    ],
)
def test_which_commands_are_test_runs(command, runner) -> None:
    runs = list_test_commands(list_commands(command))
    assert (runs[0][1] if runs else None) == runner


def run(folder: Path, words: list[str]) -> subprocess.CompletedProcess[str]:
    # A pytest that is started here reads none of this project's plugins: they take longer than its tests.
    # And it has a folder of its own for temporary files: in the one of all users it would, as it ends,
    # delete what earlier runs of the whole suite left, for up to a minute.
    own = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_DEBUG_TEMPROOT": str(folder)}
    if words[2] == "pytest":
        # Forked from a process that has loaded it: to load it takes far longer than to run these tests.
        words = [sys.executable, *words[1:]]
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
        (
            "vendor/bin/phpunit",
            "Tests: 5, Assertions: 4, Errors: 1, Failures: 1, Skipped: 1.",
            (2, 2, 1),
        ),
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
