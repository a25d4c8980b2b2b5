"""One pass of all rules over a change."""

from __future__ import annotations

from itertools import groupby

from cockpit.decide.offline.rules import line_rules, public_name_rules, python_rules, test_rules
from cockpit.decide.offline.rules.review_finding import Finding
from cockpit.decide.offline.rules.reviewed_change import Change

RULES = (
    line_rules.committed_by_mistake,
    python_rules.syntax_errors,
    public_name_rules.dropped_but_used,
    public_name_rules.broken_calls,
    test_rules.lost_tests,
    line_rules.judged_by_itself,
    line_rules.swallowed_errors,
    python_rules.mutable_defaults,
    python_rules.toothless_tests,
    test_rules.missing_tests,
    line_rules.binaries,
    line_rules.prints,
    python_rules.long_functions,
    line_rules.todos,
    public_name_rules.untouched_docs,
    public_name_rules.stale_docs,
)
"""What a change is held against, the gravest first."""

ALIKE = 3
"""Remarks of one rule on one file that are made one by one; the rest are counted."""
_NAMED = 12


def findings(change: Change) -> tuple[Finding, ...]:
    """Everything the rules have to say about ``change``: by rule, then place, each once."""
    remarks: list[Finding] = []
    for rule in RULES:
        by_name = sorted(
            set(rule(change)), key=lambda each: (each.path, each.rule, each.grade, each)
        )
        for _, group in groupby(by_name, key=lambda each: (each.path, each.rule, each.grade)):
            alike = list(group)
            remarks += alike[:ALIKE]
            if rest := alike[ALIKE:]:
                lines = ", ".join(str(each.line) for each in rest[:_NAMED])
                more = f" and {len(rest) - _NAMED} more" if len(rest) > _NAMED else ""
                first = rest[0]
                words = f"The same again in line{'s' if len(rest) > 1 else ''} {lines}{more}."
                remarks.append(Finding(first.path, first.line, first.rule, first.grade, words))
    return tuple(remarks)
