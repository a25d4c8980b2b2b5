"""Rules that read the syntax tree of a Python file."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator

from cockpit.core.parse_diff import FileDiff
from cockpit.core.test_files import is_test
from cockpit.decide.offline.rules.changed_definitions import defined, parse_def
from cockpit.decide.offline.rules.code_and_comments import functions, is_python, parse
from cockpit.decide.offline.rules.review_finding import Finding
from cockpit.decide.offline.rules.reviewed_change import Change

LONG_FUNCTION = 60
"""Lines after which a function that grew is remarked on."""

_CHECKS = re.compile(r"assert|raises|fail|warns|expect|verify|check|should", re.IGNORECASE)
# Syntax that a newer Python than the one this runs on may well accept.
_NEWER = re.compile(r"\s*(?:type\s+\w+|(?:async\s+)?def\s+\w+\[|class\s+\w+\[|except\s+\w+,)")
_MUTABLE = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
_MAKERS = frozenset({"list", "dict", "set", "bytearray"})


def syntax_errors(change: Change) -> Iterator[Finding]:
    for file in change.files:
        text = change.whole.get(file.path, "") if is_python(file.path) else ""
        error = parse(text)
        if not isinstance(error, SyntaxError) or "<<<<<<<" in text:
            continue
        number, why = error.lineno or 1, error.msg or "invalid syntax"
        line = "".join(text.split("\n")[number - 1 : number])
        newer = _NEWER.match(line) or why.startswith(("f-string", "t-string"))
        sure = (number in _ours(file) or file.status == "added") and not newer
        words = f"Python {sys.version_info[0]}.{sys.version_info[1]} cannot parse this file: {why}."
        yield Finding(file.path, number, "syntax", "blocking" if sure else "question", words)


def mutable_defaults(change: Change) -> Iterator[Finding]:
    for file in change.files:
        for new in defined(file, "+ ") if is_python(file.path) else ():
            node = parse_def(new.signature)
            given = node.args if node else ast.arguments([], [], None, [], [], None, [])
            placed = [*given.posonlyargs, *given.args]
            pairs = [*zip(reversed(placed), reversed(given.defaults), strict=False)]
            named = zip(given.kwonlyargs, given.kw_defaults, strict=True)
            pairs += [(name, default) for name, default in named if default]
            for name, default in pairs:
                number = new.line + default.lineno - 1
                if _is_mutable(default) and number in _ours(file):
                    words = f"The default of `{name.arg}` is one object that all calls share. Make it inside."
                    yield Finding(file.path, number, "mutable-default", "question", words)


def long_functions(change: Change) -> Iterator[Finding]:
    for file in change.files:
        for node in () if is_test(file.path) else functions(change, file.path):
            inside = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            if len(inside) > LONG_FUNCTION and len(_ours(file) & set(inside)) > len(inside) // 10:
                words = f"`{node.name}` is {len(inside)} lines long now. Can a part have a name?"
                yield Finding(file.path, node.lineno, "long-function", "nit", words)


def toothless_tests(change: Change) -> Iterator[Finding]:
    for file in change.files:
        for node in functions(change, file.path) if is_test(file.path) else ():
            is_ours = node.name.startswith("test") and node.lineno in _ours(file)
            if is_ours and not any(map(_checks, ast.walk(node))):
                words = (
                    f"`{node.name}` cannot fail unless an error is raised. Is that all it checks?"
                )
                yield Finding(file.path, node.lineno, "toothless-test", "question", words)


def _ours(file: FileDiff) -> set[int]:
    return {line.number for line in file.added}


def _checks(node: ast.AST) -> bool:
    if isinstance(node, ast.Assert):
        return not isinstance(node.test, ast.Constant)
    called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
    return isinstance(node, ast.Raise) or _CHECKS.search(called) is not None


def _is_mutable(node: ast.expr) -> bool:
    called = node.func if isinstance(node, ast.Call) else None
    return isinstance(node, _MUTABLE) or (isinstance(called, ast.Name) and called.id in _MAKERS)
