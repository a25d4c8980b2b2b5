"""All rules, and one pass of them over a change."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from cockpit.decide.rules import (
    documentation,
    leftovers,
    python_code,
    surface,
    tests_changed,
)
from cockpit.decide.rules.change import Change
from cockpit.decide.rules.finding import Finding

RULES: tuple[Callable[[Change], Iterable[Finding]], ...] = (
    leftovers.conflict_markers,
    leftovers.secrets,
    leftovers.hidden_characters,
    python_code.syntax_errors,
    surface.dropped_but_used,
    surface.broken_calls,
    tests_changed.lost_tests,
    leftovers.debugging,
    python_code.swallowed_errors,
    python_code.mutable_defaults,
    python_code.comparisons,
    python_code.toothless_tests,
    tests_changed.skipped_tests,
    tests_changed.missing_tests,
    leftovers.dangers,
    leftovers.binaries,
    python_code.long_functions,
    leftovers.todos,
    documentation.untouched_docs,
    documentation.stale_docs,
)
"""What a change is held against, the gravest first."""

ALIKE = 3
"""Remarks of one rule on one file that are made one by one; the rest are counted."""


def findings(change: Change) -> tuple[Finding, ...]:
    """Everything the rules have to say about ``change``: by rule, then place, each once."""
    found: list[Finding] = []
    for rule in RULES:
        by_file: dict[tuple[str, str, str], list[Finding]] = {}
        for one in sorted(set(rule(change))):
            by_file.setdefault((one.path, one.rule, one.grade), []).append(one)
        for alike in by_file.values():
            found += alike[:ALIKE]
            if rest := alike[ALIKE:]:
                last = rest[0]
                lines = ", ".join(str(one.line) for one in rest[:12])
                said = f"The same again in line{'s' if len(rest) > 1 else ''} {lines}"
                more = f" and {len(rest) - 12} more." if len(rest) > 12 else "."
                found.append(Finding(last.path, last.line, last.rule, last.grade, said + more))
    return tuple(found)
