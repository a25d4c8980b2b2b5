"""Counts of a test run, and the readers of summaries that stand in one or two lines.

Where a pipe hides the exit code, these lines alone tell a failure: mocha's ``1 failing``, rspec's
``3 examples, 1 failure``. See ``docs/reference/work-in-progress.md``.
"""

from __future__ import annotations

import re

from msgspec import Struct


class Counts(Struct, frozen=True):
    """The counts of one test run.

    ``failed`` includes errors. ``first`` names the first failed test, where the output names it. ``broken``
    is a failure that no count shows, such as a test file that could not be loaded.
    """

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    first: str = ""
    ran: bool = True
    broken: bool = False
    counted: str = "tests"


_MOCHA = re.compile(
    r"^[ \t]*(\d+) (passing|failing|pending)(?: \([^()\n]*\))?[ \t]*$", re.MULTILINE
)
_MOCHA_FIRST = re.compile(r"^[ \t]*1\) ", re.MULTILINE)
_MOCHA_TITLES = 8
"""Lines that the title of a nested test may have."""

_TOTAL, _FAILED = r"(?P<total>\d+)", r"(?P<failed>\d+)"
_PASSED, _SKIPPED, _ERRORS = r"(?P<passed>\d+)", r"(?P<skipped>\d+)", r"(?P<errors>\d+)"
_SUMMARIES = tuple(
    re.compile(shape, re.MULTILINE)
    for shape in (
        # rspec, jasmine
        rf"^{_TOTAL} (?:examples?|specs?), {_FAILED} failures?(?:, {_SKIPPED} pending)?",
        # phpunit
        rf"^OK \({_TOTAL} tests?, \d+ assertions?\)$",
        rf"^Tests: {_TOTAL}, Assertions: \d+(?:, Errors: {_ERRORS})?(?:, Failures: {_FAILED})?"
        rf"(?:, [\w ]+: \d+)*?(?:, Skipped: {_SKIPPED})?",
        # minitest
        rf"^{_TOTAL} runs, \d+ assertions, {_FAILED} failures, {_ERRORS} errors, {_SKIPPED} skips",
        # maven, of all modules; the last line is the sum
        rf"^(?:\[\w+\] +)?Tests run: {_TOTAL}, Failures: {_FAILED}, Errors: {_ERRORS}, Skipped: {_SKIPPED}",
        # gradle
        rf"^{_TOTAL} tests? completed, {_FAILED} failed(?:, {_SKIPPED} skipped)?",
        # dotnet
        rf"^(?:Passed|Failed)! +- Failed: +{_FAILED}, Passed: +{_PASSED}, Skipped: +{_SKIPPED}",
        # bun, in two to four lines
        rf"^ *{_PASSED} pass\n(?: *{_SKIPPED} skip\n)?(?: *\d+ todo\n)? *{_FAILED} fail$",
        # deno
        rf"^(?:ok|FAILED) \| {_PASSED} passed[^|\n]*\| {_FAILED} failed[^|\n]*?(?: \| {_SKIPPED} ignored)?"
        r"[^|\n]*(?: \| \d+ filtered out[^|\n]*)?$",
        # ava, in one to three lines
        rf"^ *(?:{_PASSED} tests? passed\n)?(?: *{_ERRORS} uncaught exceptions?\n)?"
        rf" *{_FAILED} tests? failed(?:\n *{_SKIPPED} tests? skipped)?$",
        rf"^ *{_PASSED} tests? passed(?:\n *{_SKIPPED} tests? skipped)?$",
        # tap
        rf"^# {{ total: {_TOTAL}(?:, pass: {_PASSED})?(?:, fail: {_FAILED})?(?:, skip: {_SKIPPED})?",
        # tape and other TAP
        rf"^# pass +{_PASSED}\n(?:# fail +{_FAILED})?",
        # ctest
        rf"^\d+% tests passed, {_FAILED} tests failed out of {_TOTAL}",
    )
)


_FIRST = tuple(
    re.compile(shape, re.MULTILINE)
    for shape in (
        r"^\(fail\) (?P<name>.+?)(?: \[[\d.]+m?s\])?$",  # bun
        r"^[ \t]*✘ \[fail\]: (?P<name>.+)$",  # ava
        r"^(?P<name>\S.*) => \S+:\d+:\d+$",  # deno
        r"^[ \t]*\d+ - (?P<name>\S+) \((?:Failed|Timeout|Not Run|SEGFAULT|ILLEGAL)\)$",  # ctest
        r"^[ \t]*not ok \d+ (?:- )?(?P<name>\S.*?)(?: +#.*)?$",  # TAP
        r"^(?P<name>\S+) +\(Wstat: .*\bFailed: [1-9]",  # prove
        r"^1\) (?P<name>\S.*)$",  # jasmine
    )
)
"""Lines that name a failed test; the first of them is told."""
_AVA_PASSED = re.compile(r"^[ \t]*✔ ", re.MULTILINE)
_PROVE = re.compile(r"^Files=\d+, Tests=(\d+), .*\nResult: (PASS|FAIL|NOTESTS)$", re.MULTILINE)
_PROVE_FAILED = re.compile(r"\(Wstat: .*\bFailed: (\d+)\)", re.MULTILINE)


def read_mocha(text: str) -> Counts | None:
    """Return mocha's counts; None when this is not an output of mocha."""
    by = {word: int(number) for number, word in _MOCHA.findall(text)}
    if "passing" not in by and "failing" not in by:
        return None
    passed, failed = by.get("passing", 0), by.get("failing", 0)
    skipped = by.get("pending", 0)
    first = _first_of_mocha(text) if failed else ""
    return Counts(passed, failed, skipped, first, passed + failed + skipped > 0)


def _first_of_mocha(text: str) -> str:
    """Return the first failed test with its suites; its title ends with a colon, lines below."""
    ends = [match.end() for match in _MOCHA.finditer(text) if match[2] == "failing"]
    begun = _MOCHA_FIRST.search(text, ends[-1])
    if begun is None:
        return ""
    titles: list[str] = []
    for line in text[begun.end() :].splitlines()[:_MOCHA_TITLES]:
        titles.append(line.strip())
        if line.rstrip().endswith(":"):
            return " › ".join(titles).rstrip(":")
    return titles[0] if titles else ""


def read_summary(text: str) -> Counts | None:
    """Return the counts of the last summary line of a runner without a reader of its own."""
    if prove := _PROVE.search(text):
        total, failed = int(prove[1]), sum(map(int, _PROVE_FAILED.findall(text)))
        broken = prove[2] == "FAIL"
        return Counts(
            max(0, total - failed),
            failed,
            first=_first_failed(text) if broken else "",
            ran=total > 0,
            broken=broken,
        )
    for shape in _SUMMARIES:
        matches = list(shape.finditer(text))
        if matches:
            by = {name: int(number or 0) for name, number in matches[-1].groupdict().items()}
            failed, skipped = by.get("failed", 0) + by.get("errors", 0), by.get("skipped", 0)
            passed = by.get("passed", max(0, by.get("total", 0) - failed - skipped))
            if (
                not passed and "✘ [fail]: " in text
            ):  # ava sums up what passed only without a failure
                passed = len(_AVA_PASSED.findall(text))
            first = _first_failed(text) if failed else ""
            return Counts(passed, failed, skipped, first, passed + failed + skipped > 0)
    return None


def _first_failed(text: str) -> str:
    """Return the first failed test that the output names; '' where it names none."""
    for shape in _FIRST:
        if match := shape.search(text):
            return match["name"].strip()
    return ""
