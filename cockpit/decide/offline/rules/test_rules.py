"""Rules about tests that were lost, or are missing."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cockpit.core.parse_diff import FileDiff, Line
from cockpit.core.test_files import is_test
from cockpit.decide.offline.rules.code_and_comments import added_code
from cockpit.decide.offline.rules.public_name_rules import new_names, removed_names
from cockpit.decide.offline.rules.review_finding import Finding, quote_names
from cockpit.decide.offline.rules.reviewed_change import Change, is_source

FEW_LINES = 4
"""Added lines of code up to which a change without tests is let pass."""

_TEST = re.compile(
    r"\s*(?:async\s+)?def\s+(?P<python>test\w*)\s*\(|func\s+(?P<go>Test\w+)\(|"
    r"\s*(?:it|test)\(\s*(?P<quote>['\"`])(?P<js>.+?)(?P=quote)"
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
    gone = "|".join(re.escape(name.name) for name in removed_names(change)) or "(?!)"
    # What a test speaks of may be gone as well.
    subject = re.compile(rf"(?:\b|_)(?:{gone})(?:\b|_)")
    touched = any(is_source(file.path) and (file.added or file.removed) for file in change.files)
    for file in change.files:
        before = tests_on(file, "-")
        lost = {
            name: line
            for name, line in before.items()
            if name not in gained and not subject.search(_body(file, line))
        }
        if len(lost) <= len(tests_on(file, "+").keys() - before.keys()):
            # As many came in the same file: renamed or rewritten, not lost.
            continue
        first = next(iter(lost.values()))
        words = (
            f"{quote_names(list(lost), 5)} {'was' if len(lost) == 1 else 'were'} taken out"
            f" (line {first.number} before){', while the code under test changes' if touched else ''}."
            " What checks that behaviour now?"
        )
        line = 0 if file.status == "removed" else first.near
        yield Finding(file.path, line, "lost-test", "blocking" if touched else "question", words)


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


def missing_tests(change: Change) -> Iterator[Finding]:
    shown = (lines.values() for path, lines in change.lines.items() if is_test(path))
    tested = "\n".join(text for texts in shown for text in texts)
    untested: dict[str, dict[str, int]] = {}
    for new in new_names(change):
        if not new.name.isupper() and not re.search(rf"\b{re.escape(new.name)}\b", tested):
            untested.setdefault(new.path, {}).setdefault(new.name, new.line)
    for path, names in untested.items():
        words = f"No test that I have seen mentions {quote_names(list(names), 5)}. What would fail without?"
        yield Finding(path, min(names.values()), "missing-test", "question", words)
    if untested or any(is_test(path) for path in change.paths):
        return
    code = [(path, line) for path, line, _ in added_code(change) if is_source(path)]
    if len(code) > FEW_LINES:
        words = f"{len(code)} lines of code change and no test does. Which test would have failed before?"
        yield Finding(*code[0], "missing-test", "question", words)
