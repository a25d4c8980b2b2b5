"""Rules about tests: lost, skipped, or missing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from cockpit.core.test_files import is_test
from cockpit.decide.offline.rules.changed_definitions import Definition
from cockpit.decide.offline.rules.code_and_comments import added_code
from cockpit.decide.offline.rules.parse_diff import FileDiff, Line
from cockpit.decide.offline.rules.public_name_rules import new_names, removed_names
from cockpit.decide.offline.rules.review_finding import Finding
from cockpit.decide.offline.rules.reviewed_change import Change, is_source

FEW_LINES = 4
"""Added lines of code up to which a change without tests is let pass."""

_TEST = re.compile(
    r"\s*(?:async\s+)?def\s+(?P<python>test\w*)\s*\(|func\s+(?P<go>Test\w+)\(|"
    r"\s*(?:it|test)\(\s*(?P<quote>['\"`])(?P<js>.+?)(?P=quote)"
)
_SKIP = re.compile(
    r"pytest\.mark\.(?:skip|xfail)\b|pytest\.skip\(|unittest\.skip|\bskipTest\(|"
    r"\b(?:it|test|describe)\.skip\(|\bx(?:it|describe|test)\(|\bt\.Skip(?:Now|f)?\(|#\[ignore\]|"
    r"@(?:Disabled|Ignore)\b"
)


def tests_on(file: FileDiff, sign: str) -> dict[str, Line]:
    """Tests defined on the lines of a test file with this sign: name to line."""
    tests: dict[str, Line] = {}
    for line in file.lines() if is_test(file.path) or is_test(file.old_path) else ():
        if line.sign == sign and (match := _TEST.match(line.text)):
            tests[match["python"] or match["go"] or match["js"]] = line
    return tests


def lost_tests(change: Change) -> Iterator[Finding]:
    gained = {name for file in change.files for name in tests_on(file, "+")}
    gone = {name.name for name in removed_names(change)}
    touched = any(is_source(file.path) and (file.added or file.removed) for file in change.files)
    for file in change.files:
        fresh = tests_on(file, "+").keys() - tests_on(file, "-").keys()
        lost = [
            (name, line)
            for name, line in tests_on(file, "-").items()
            if name not in gained and not _mentions(_body(file, line), gone)
        ]
        if len(lost) <= len(fresh):
            # As many came in the same file: renamed or rewritten, not lost.
            continue
        names = ", ".join(f"`{name}`" for name, _ in lost[:5])
        more = f" and {len(lost) - 5} more" if len(lost) > 5 else ""
        first = lost[0][1]
        yield Finding(
            file.path,
            0 if file.status == "removed" else first.near,
            "lost-test",
            "blocking" if touched else "question",
            f"{names}{more} {'was' if len(lost) == 1 else 'were'} taken out (line {first.number} "
            f"before)"
            + (
                ", while the code under test changes. What checks that behaviour now?"
                if touched
                else ". Is that behaviour no longer promised?"
            ),
        )


def _body(file: FileDiff, start: Line) -> str:
    """The removed lines of a test, up to the next one, removed or kept."""
    lines = list(file.lines())
    removed: list[str] = []
    for line in lines[lines.index(start) :]:
        if line is not start and line.sign != "+" and _TEST.match(line.text):
            break
        if line.sign == "-":
            removed.append(line.text)
    return "\n".join(removed)


def _mentions(text: str, names: Iterable[str]) -> bool:
    """True when ``text`` speaks of one of ``names``: what it tested is gone as well."""
    return any(re.search(rf"(?:\b|_){re.escape(name)}(?:\b|_)", text) for name in names)


def skipped_tests(change: Change) -> Iterator[Finding]:
    for path, line, code in added_code(change):
        if is_test(path) and _SKIP.search(code):
            message = "A test is switched off here. Until when, and which issue brings it back?"
            yield Finding(path, line, "skipped-test", "question", message)


def missing_tests(change: Change) -> Iterator[Finding]:
    tested = "\n".join(_test_lines(change))
    untested = [
        new
        for new in new_names(change)
        if not new.name.isupper() and not re.search(rf"\b{re.escape(new.name)}\b", tested)
    ]
    by_path: dict[str, list[Definition]] = {}
    for new in untested:
        by_path.setdefault(new.path, []).append(new)
    for path, names in by_path.items():
        listed = ", ".join(f"`{new.name}`" for new in names[:5])
        message = (
            f"No test that I have seen mentions {listed}. What would fail if {_it(names)} broke?"
        )
        yield Finding(path, names[0].line, "missing-test", "question", message)
    if untested or any(is_test(path) for path in change.paths):
        return
    code = [(path, line) for path, line, _ in added_code(change) if is_source(path)]
    if len(code) > FEW_LINES:
        path, line = code[0]
        message = (
            f"{len(code)} lines of code change and no test does. Which test would have failed "
            "before?"
        )
        yield Finding(path, line, "missing-test", "question", message)


def _it(names: list[Definition]) -> str:
    return "it" if len(names) == 1 else "they"


def _test_lines(change: Change) -> Iterator[str]:
    for path, lines in change.lines.items():
        if is_test(path):
            yield from lines.values()
    for reference in change.references:
        if is_test(reference.path):
            yield reference.text
