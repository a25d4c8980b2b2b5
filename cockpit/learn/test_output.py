"""Results of test runs: how many tests passed and failed, and which failed first.

Counts of pytest, unittest, jest, vitest, mocha, go test, cargo test and node's runner are read, in any order
and colour; of many others the summary line (:mod:`cockpit.learn.test_counts`), else only pass or fail.
See ``docs/reference/backlog.md``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from cockpit.access.shell_commands import RanCommand, list_commands
from cockpit.core.failure_lines import pick_failure_lines
from cockpit.core.json_fields import parse_object
from cockpit.learn.test_counts import Counts, read_mocha, read_summary
from cockpit.learn.test_runners import KNOWN, RUNS_PROGRAMS, test_commands

_MOST = 200_000
"""Characters of output that are looked at: the first and the last half, and failures between them."""
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\r(?=\n)")
_LONGEST_LINE = 1_000
_LONGEST_NAME = 300
_MOST_FAILING = 1_000

_PYTEST = re.compile(
    r"^(?:=+ )?(?P<counts>(?:no tests ran|\d+ [a-z]+)(?:, \d+ [a-z]+)*) in [\d.]+ ?s(?:econds)?\b.*$",
    re.MULTILINE,
)
_PYTEST_BROKEN = re.compile(
    r"^(?:collecting \.\.\. )?ERROR: (?:file or dir|not found|usage|while)", re.M
)
_PYTEST_FIRST = (
    re.compile(r"^FAILED (?P<name>\S.*?)(?: - .*)?$", re.MULTILINE),
    re.compile(r"^ERROR (?P<name>[^\s:]\S*(?:::.*?)?)(?: - .*)?$", re.MULTILINE),
    re.compile(r"^(?:\[gw\d+\] \[ *\d+%\] )?(?:FAILED|ERROR) (?P<name>\S+)", re.MULTILINE),
    re.compile(r"^(?P<name>[^\s:]+::\S.*?)[ \t]+(?:FAILED|ERROR)\b", re.MULTILINE),
    re.compile(r"^_{3,} (?:ERROR (?:at \w+ of|collecting) )?(?P<name>\S.*?) _{3,}$", re.MULTILINE),
)
_UNITTEST = re.compile(r"^Ran (\d+) tests? in ", re.MULTILINE)
_RAN = re.compile(
    r"^Ran \d+ tests? in [\d.]+s[ \t]*$|^=+ \d+ (?:passed|failed|error)[a-z0-9, ]* in [\d.]+s.*$",
    re.MULTILINE,
)
_UNITTEST_END = re.compile(r"^(OK|FAILED|NO TESTS RAN)(?: \((.*)\))?[ \t]*$", re.MULTILINE)
_UNITTEST_FIRST = re.compile(r"^(?:FAIL|ERROR): (\S+)(?: \((.+?)\))?", re.MULTILINE)
_JEST = re.compile(r"^Tests:[ \t]+(.*\d+ total.*)$", re.MULTILINE)
_JEST_SUITES = re.compile(r"^Test Suites:[ \t]+(?:(\d+) failed)?", re.MULTILINE)
_JEST_FILE = re.compile(r"^[ \t]*FAIL[ \t]+(\S+)", re.MULTILINE)
_JEST_FIRST = re.compile(r"^[ \t]*● (?!Test suite failed|Console)(.+)$", re.MULTILINE)
_VITEST = re.compile(r"^[ \t]*Tests[ \t]+(.*\(\d+\)|no tests.*)$", re.MULTILINE)
_VITEST_FIRST = re.compile(r"^[ \t]*FAIL[ \t]+(\S.*)$", re.MULTILINE)
_NODE = re.compile(r"^[#ℹ] (tests|pass|fail|cancelled|skipped|todo) (\d+)$", re.MULTILINE)
_NODE_FIRST = re.compile(r"^[ \t]*(?:not ok \d+ - |✖ )(.+?)(?: \([\d.]+ms\))?[ \t]*$", re.MULTILINE)
_NODE_PLACE = re.compile(r"^(?:[ \t]+location: '(.+):\d+'|test at (.+):\d+)$", re.MULTILINE)
_CARGO = re.compile(
    r"^test result: (?:ok|FAILED)\. (\d+) passed; (\d+) failed; (\d+) ignored", re.MULTILINE
)
_CARGO_FIRST = re.compile(r"^test (\S.*?) \.\.\. FAILED", re.MULTILINE)
_GO_CASE = re.compile(r"^( *)--- (PASS|FAIL|SKIP): (\S+) \(", re.MULTILINE)
_GO_PACKAGE = re.compile(
    r"^(ok|FAIL)[ \t]+(\S+)[ \t]+(\(cached\)|[\d.]+s|\[[a-z ]+\])", re.MULTILINE
)
_GO_NO_TESTS = re.compile(r"^(?:\?[ \t]+\S+[ \t]+\[no test files\])$", re.MULTILINE)
_NUMBERED = re.compile(r"(\d+) ([a-z]+(?: [a-z]+)?)")
_NOT_STARTED = re.compile(
    r"No module named '?(?:pytest|unittest|nose2?|tox|django)\b|command not found"
    r"|error: could not compile|\[build failed\]|\[setup failed\]|ERROR: (?:usage|file or directory)"
    r"|npm (?:ERR!|error) Missing script",
)


class TestResults(Struct, frozen=True):
    """One test run.

    ``outcome`` is ``pass``, ``fail``, or ``unknown`` where the output was cut and the exit code is another
    program's. ``counted`` names the counted things: ``tests``, ``packages`` (go without ``-v`` names no
    passing test), or '' without counts; ``failed`` includes errors. ``ran`` is False when no test began.
    """

    __test__ = False

    runner: str
    ran: bool
    outcome: str
    counted: str = ""
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    failing_test: str = ""

    def wip(self) -> dict[str, Any]:
        """Return ``test_results`` of work in progress, with every key: no value of an older run stays."""
        return asdict(self)


def read_tests(
    argv_or_command: str | Sequence[str], output: str, exit_code: int | None
) -> TestResults | None:
    """Return the result of the test run in this command; None when it runs no tests.

    ``exit_code`` is the whole command's. Where a pipe or a later command hides the runner's own, the output
    decides.
    """
    return results_of(list_commands(argv_or_command), output, exit_code)


def results_of(
    simple: Sequence[RanCommand], output: str, exit_code: int | None
) -> TestResults | None:
    """Return the same as :func:`read_tests`, for commands that are already parsed."""
    text = plain(output)
    runs = test_commands(simple) or _by_their_words(simple, text)
    if not runs:
        return None
    last, runner = runs[-1]
    counts, by = _read(runner, text)
    own = exit_code if _owns_exit(simple, last, exit_code) else None
    if counts is None:
        return _uncounted(runner, text, own)
    outcome = "fail" if counts.failed or counts.broken else "pass"
    if own not in (None, 0) and not (counts.ran and outcome == "fail"):
        outcome = "fail"  # a threshold of coverage, a crash afterwards
    elif own is None and not counts.ran and outcome == "pass":
        outcome = "unknown"
    return TestResults(
        runner=by if runner not in KNOWN else runner,
        ran=counts.ran,
        outcome=outcome,
        counted=counts.counted if counts.ran else "",
        passed=counts.passed,
        failed=counts.failed,
        skipped=counts.skipped,
        failing_test=counts.first[:_LONGEST_NAME] if outcome == "fail" else "",
    )


def list_failing(output: str) -> tuple[str, ...]:
    """Return the names of all tests that the output calls failed, each once, at most 1,000."""
    text = plain(output)
    names = [_unittest_name(match) for match in _UNITTEST_FIRST.finditer(text)]
    for shape in (*_PYTEST_FIRST[:2], _JEST_FIRST, _VITEST_FIRST, _NODE_FIRST, _CARGO_FIRST):
        names += [match[1] for match in shape.finditer(text)]
    names += [name for _, verdict, name in _GO_CASE.findall(text) if verdict == "FAIL"]
    named = {name.strip()[:_LONGEST_NAME] for name in names if not name.startswith("(")}
    return tuple(sorted(named)[:_MOST_FAILING])


def _by_their_words(simple: Sequence[RanCommand], text: str) -> list[tuple[RanCommand, str]]:
    """List programs with a test runner's output whose arguments do not name one."""
    if _RAN.search(text) is None:
        return []
    ran = [
        command for command in simple if command.program and RUNS_PROGRAMS.match(command.program)
    ]
    return [(command, "script") for command in ran]


def plain(output: str) -> str:
    """Return output without colours and with no long line; of a long one its beginning, the lines of its
    middle that say what failed, and its end."""
    if len(output) > _MOST:
        half = _MOST // 2
        kept = pick_failure_lines(output[half:-half])
        output = "\n".join([output[:half], *kept, output[-half:]])
    return "\n".join(line[:_LONGEST_LINE] for line in _ESCAPE.sub("", output).split("\n"))


def masked(simple: Sequence[RanCommand], command: RanCommand) -> bool:
    """Whether the exit code of the whole may be another program's than that of ``command``."""
    place = next(i for i, each in enumerate(simple) if each is command)
    return any(each.joined != "&&" for each in simple[place + 1 :])


def _owns_exit(simple: Sequence[RanCommand], command: RanCommand, exit_code: int | None) -> bool:
    # In a chain of && it passed when the whole did; when that failed, it is the likeliest to have.
    return exit_code is not None and not masked(simple, command)


def _uncounted(runner: str, text: str, own: int | None) -> TestResults:
    if _NOT_STARTED.search(text):
        return TestResults(runner, ran=False, outcome="fail")
    first = _first_of(runner, text)
    if own is None:
        broke = bool(first) or "Traceback (most recent call last):" in text
        return TestResults(runner, True, "fail" if broke else "unknown", failing_test=first)
    return TestResults(
        runner, ran=True, outcome="fail" if own else "pass", failing_test=first if own else ""
    )


def _read(runner: str, text: str) -> tuple[Counts | None, str]:
    """Return the counts, and the runner whose format they have."""
    if runner in KNOWN:
        return _READERS[runner](text), runner
    for name in KNOWN:
        if name != "go" or runner in ("make", "gotestsum", "just"):
            counts = _READERS[name](text)
            if counts is not None:
                return counts, name if runner != "script" else runner
    return read_summary(text), runner


def _pytest(text: str) -> Counts | None:
    ends = list(_PYTEST.finditer(text))
    if not ends:
        return None
    counts = ends[-1]["counts"]
    by = {word: int(number) for number, word in _NUMBERED.findall(counts)}
    errors = by.get("error", 0) + by.get("errors", 0)
    passed, failed = by.get("passed", 0) + by.get("xpassed", 0), by.get("failed", 0) + errors
    skipped = by.get("skipped", 0) + by.get("xfailed", 0)
    return Counts(
        passed=passed,
        failed=failed,
        skipped=skipped,
        first=_first_of("pytest", text) if failed else "",
        ran=passed + failed + skipped > 0,
        broken=_PYTEST_BROKEN.search(text) is not None,
    )


def _first_of(runner: str, text: str) -> str:
    if runner == "pytest":
        for shape in _PYTEST_FIRST:
            if match := shape.search(text):
                return match["name"]
    if runner == "unittest" and (match := _UNITTEST_FIRST.search(text)):
        return _unittest_name(match)
    return ""


def _unittest_name(match: re.Match[str]) -> str:
    name, place = match[1], match[2] or ""
    if not place or place.endswith(f".{name}"):  # Python 3.11 and later give the whole name
        return place or name
    return f"{place}.{name}" if re.fullmatch(r"[\w.]+", place) else f"{name} ({place})"


def _unittest(text: str) -> Counts | None:
    runs = list(_UNITTEST.finditer(text))
    if not runs:
        return None
    end = _UNITTEST_END.search(text, runs[-1].end())
    total = int(runs[-1][1])
    by: dict[str, int] = {}
    for part in (end[2] or "").split(",") if end else ():
        name, _, number = part.strip().partition("=")
        by[name] = int(number) if number.isdigit() else 0
    failed = by.get("failures", 0) + by.get("errors", 0) + by.get("unexpected successes", 0)
    skipped = by.get("skipped", 0) + by.get("expected failures", 0)
    first = _UNITTEST_FIRST.search(text)
    return Counts(
        passed=max(0, total - failed - skipped),
        failed=failed,
        skipped=skipped,
        first=_unittest_name(first) if first and failed else "",
        ran=total > 0 or failed > 0,
        broken=end is not None and end[1] == "FAILED",
    )


def _jest(text: str) -> Counts | None:
    ends = list(_JEST.finditer(text))
    if not ends:
        return None
    by = {word: int(number) for number, word in _NUMBERED.findall(ends[-1][1])}
    suites = _JEST_SUITES.search(text)
    broken = bool(suites and suites[1])
    file, first = _JEST_FILE.search(text), _JEST_FIRST.search(text)
    where = file[1] if file else ""
    name = (
        f"{where}: {first[1].strip()}"
        if first and where
        else where or (first[1].strip() if first else "")
    )
    return Counts(
        passed=by.get("passed", 0),
        failed=by.get("failed", 0),
        skipped=by.get("skipped", 0) + by.get("todo", 0),
        first=name if broken or by.get("failed") else "",
        ran=by.get("total", 0) > 0,
        broken=broken,
    )


def _vitest(text: str) -> Counts | None:
    ends = list(_VITEST.finditer(text))
    if not ends:
        return None
    by = {word: int(number) for number, word in _NUMBERED.findall(ends[-1][1])}
    first = _VITEST_FIRST.search(text)
    return Counts(
        passed=by.get("passed", 0),
        failed=by.get("failed", 0),
        skipped=by.get("skipped", 0) + by.get("todo", 0),
        first=first[1].strip() if first else "",
        ran=bool(by),
        broken=bool(first),
    )


def _node(text: str) -> Counts | None:
    by = {word: int(number) for word, number in _NODE.findall(text)}
    if "pass" not in by or "fail" not in by:
        return None
    first, place = _NODE_FIRST.search(text), _NODE_PLACE.search(text)
    where = f"{(place[1] or place[2])}: " if place else ""
    failed = by["fail"] + by.get("cancelled", 0)
    return Counts(
        passed=by["pass"],
        failed=failed,
        skipped=by.get("skipped", 0) + by.get("todo", 0),
        first=f"{where}{first[1]}" if first and failed else "",
        ran=by.get("tests", by["pass"] + by["fail"]) > 0,
    )


def _cargo(text: str) -> Counts | None:
    ends = _CARGO.findall(text)
    if not ends:
        return None
    passed, failed, skipped = (sum(int(end[place]) for end in ends) for place in range(3))
    first = _CARGO_FIRST.search(text)
    counts = Counts(passed=passed, failed=failed, skipped=skipped, first=first[1] if first else "")
    return replace(counts, ran=passed + failed + skipped > 0)


def _go(output: str) -> Counts | None:
    """Return the counts; None when this is not an output of ``go test``.

    A test with subtests counts once. Without ``-v`` passing tests are not named, and packages count.
    """
    if '"Action":' in output:
        return _go_json(output)
    cases = [(len(lead), verdict, name) for lead, verdict, name in _GO_CASE.findall(output)]
    packages = _GO_PACKAGE.findall(output)
    if not cases and not packages:
        return Counts(ran=False) if _GO_NO_TESTS.search(output) else None
    broken = any(verdict == "FAIL" for verdict, _, _ in packages)
    first = _go_first([name for _, verdict, name in cases if verdict == "FAIL"])
    package = next((name for verdict, name, _ in packages if verdict == "FAIL"), "")
    named = f"{package}: {first}" if first and package else first or package
    if "=== RUN" in output:
        top = [verdict for lead, verdict, _ in cases if lead == 0]
        return Counts(
            top.count("PASS"), top.count("FAIL"), top.count("SKIP"), named, bool(top), broken
        )
    passed = sum(verdict == "ok" for verdict, _, _ in packages)
    return Counts(
        passed=passed,
        failed=sum(verdict == "FAIL" for verdict, _, _ in packages),
        first=named if broken or first else "",
        broken=broken,
        ran=any(not state.startswith("[") for _, _, state in packages),
        counted="packages",
    )


def _go_json(output: str) -> Counts | None:
    ended: dict[tuple[str, str], str] = {}
    failed: list[str] = []
    for line in output.splitlines():
        event = parse_object(line)  # None for a line that was cut
        if event is None or event.get("Action") not in ("pass", "fail", "skip"):
            continue
        package, test = str(event.get("Package", "")), str(event.get("Test", ""))
        ended[package, test] = str(event["Action"])
        if event["Action"] == "fail" and test:
            failed.append(f"{package}: {test}")
    if not ended:
        return None
    top = [verdict for (_, test), verdict in ended.items() if test and "/" not in test]
    broken = any(verdict == "fail" for verdict in ended.values())
    lost = next((package for (package, _), verdict in ended.items() if verdict == "fail"), "")
    first = failed[0] if failed else lost
    return Counts(top.count("pass"), top.count("fail"), top.count("skip"), first, bool(top), broken)


def _go_first(names: list[str]) -> str:
    """Return the first failed test at its deepest level: a test fails because of its subtest."""
    first = names[0] if names else ""
    for name in names[1:]:
        if name.startswith(f"{first}/"):
            first = name
    return first


_READERS: dict[str, Callable[[str], Counts | None]] = {
    "pytest": _pytest,
    "unittest": _unittest,
    "jest": _jest,
    "vitest": _vitest,
    "go": _go,
    "cargo": _cargo,
    "node": _node,
    "mocha": read_mocha,
}
