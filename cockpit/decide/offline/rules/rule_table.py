"""The table of all rules, and one pass of them over a change."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from cockpit.decide.offline.rules import (
    docs_rules,
    leftover_rules,
    public_name_rules,
    python_rules,
    test_rules,
)
from cockpit.decide.offline.rules.review_finding import Finding
from cockpit.decide.offline.rules.reviewed_change import Change

RULES: tuple[Callable[[Change], Iterable[Finding]], ...] = (
    leftover_rules.conflict_markers,
    leftover_rules.secrets,
    leftover_rules.hidden_characters,
    python_rules.syntax_errors,
    public_name_rules.dropped_but_used,
    public_name_rules.broken_calls,
    test_rules.lost_tests,
    leftover_rules.debugging,
    python_rules.swallowed_errors,
    python_rules.mutable_defaults,
    python_rules.comparisons,
    python_rules.toothless_tests,
    test_rules.skipped_tests,
    test_rules.missing_tests,
    leftover_rules.dangers,
    leftover_rules.binaries,
    python_rules.long_functions,
    leftover_rules.todos,
    docs_rules.untouched_docs,
    docs_rules.stale_docs,
)
"""What a change is held against, the gravest first."""

ALIKE = 3
"""Remarks of one rule on one file that are made one by one; the rest are counted."""


def findings(change: Change) -> tuple[Finding, ...]:
    """Everything the rules have to say about ``change``: by rule, then place, each once."""
    remarks: list[Finding] = []
    for rule in RULES:
        by_file: dict[tuple[str, str, str], list[Finding]] = {}
        for finding in sorted(set(rule(change))):
            by_file.setdefault((finding.path, finding.rule, finding.grade), []).append(finding)
        for alike in by_file.values():
            remarks += alike[:ALIKE]
            if rest := alike[ALIKE:]:
                last = rest[0]
                lines = ", ".join(str(finding.line) for finding in rest[:12])
                message = f"The same again in line{'s' if len(rest) > 1 else ''} {lines}"
                more = f" and {len(rest) - 12} more." if len(rest) > 12 else "."
                remarks.append(Finding(last.path, last.line, last.rule, last.grade, message + more))
    return tuple(remarks)
