"""Rules that know Python: what does not parse, and what parses and goes wrong later."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator

from cockpit.core.test_files import is_test
from cockpit.decide.offline.rules.code_and_comments import (
    FunctionNode,
    added_code,
    functions,
    is_python,
    parse,
    tree,
)
from cockpit.decide.offline.rules.review_finding import Finding
from cockpit.decide.offline.rules.reviewed_change import Change

LONG_FUNCTION = 60
"""Lines after which a function that grew is remarked on."""

_BARE = re.compile(r"\s*except\s*:")
_BROAD = re.compile(r"\s*+except\s*+(?:\(?\s*+(?:Base)?Exception\b[^:]*+)?+:\s*+(?P<body>\S.*)?\Z")
_NOTHING = re.compile(r"\s*(?:pass|\.\.\.|continue)\s*\Z")
_TO_NONE = re.compile(r"(?<![<>=!])[=!]=\s*None\b|\bNone\s*[=!]=(?!=)")
_TO_BOOL = re.compile(r"(?<![<>=!])[=!]=\s*(?:True|False)\b")
_IS_LITERAL = re.compile(r"\bis\s+(?:not\s+)?(?:\"\"|\d+\b)")
_ASSERT_PAIR = re.compile(r"\s*assert\s*\(.+,\s*\"\"\s*\)\s*\Z")
_DEFAULT = re.compile(
    r"\s*(?:async\s+)?def\s+\w+\(.*?\b(\w+)\s*(?::[^=,]+)?=\s*(\[\]|\{\}|set\(\))"
)
_MOST_OF_A_LINE = 1_000
"""Characters in which a default is looked for: a line that others wrote can be of any length."""
_CHECKS = re.compile(r"assert|raises|fail|warns|expect|verify|check|should", re.IGNORECASE)
# Syntax that a newer Python than the one this runs on may well accept.
_NEWER = re.compile(r"\s*(?:type\s+\w+|(?:async\s+)?def\s+\w+\[|class\s+\w+\[|except\s+\w+,)")


def syntax_errors(change: Change) -> Iterator[Finding]:
    for file in change.files:
        if not is_python(file.path) or file.path not in change.whole:
            continue
        error = parse(change.whole[file.path])
        if not isinstance(error, SyntaxError) or "<<<<<<<" in change.whole[file.path]:
            continue
        line = error.lineno or 1
        ours = {added.number for added in file.added}
        lines = change.whole[file.path].split("\n")
        text = lines[line - 1] if line <= len(lines) else ""
        message = error.msg or "invalid syntax"
        newer = _NEWER.match(text) or message.startswith(("f-string", "t-string"))
        sure = (line in ours or file.status == "added") and not newer
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        yield Finding(
            file.path,
            line,
            "syntax",
            "blocking" if sure else "question",
            f"Python {version} cannot parse this file: {message}.",
        )


def swallowed_errors(change: Change) -> Iterator[Finding]:
    for path, line, code in added_code(change):
        if not is_python(path):
            continue
        broad = _BROAD.match(code)
        body = [broad["body"]] if broad and broad["body"] else change.after(path, line, 1)
        if broad and body and _NOTHING.match(body[0]):
            yield Finding(
                path,
                line,
                "swallowed-error",
                "question",
                "Every error is caught here and dropped without a trace. Which one is expected? "
                "Catch that one, and say why it may pass.",
            )
        elif _BARE.match(code) and not any("raise" in text for text in change.after(path, line, 6)):
            yield Finding(
                path,
                line,
                "bare-except",
                "question",
                "A bare `except:` also catches KeyboardInterrupt and SystemExit. Which error is "
                "meant?",
            )


def mutable_defaults(change: Change) -> Iterator[Finding]:
    message = (
        "The default of `{name}` is one object that all calls share; a change in one call is seen "
        "by the next. Use None and make it inside."
    )
    for file in change.files:
        ours = {added.number for added in file.added}
        if (module := tree(change, file.path)) is not None:
            for node in functions(module):
                for name, default in _defaults(node):
                    if default.lineno in ours and _is_mutable(default):
                        yield Finding(
                            file.path,
                            default.lineno,
                            "mutable-default",
                            "question",
                            message.format(name=name),
                        )
        elif is_python(file.path):
            for added in file.added:
                if match := _DEFAULT.match(added.text[:_MOST_OF_A_LINE]):
                    yield Finding(
                        file.path,
                        added.number,
                        "mutable-default",
                        "question",
                        message.format(name=match[1]),
                    )


def comparisons(change: Change) -> Iterator[Finding]:
    for path, line, code in added_code(change):
        if not is_python(path):
            continue
        if _TO_NONE.search(code):
            message = "Compare with None by `is` or `is not`: `==` asks the object, which may lie."
            yield Finding(path, line, "equals-none", "nit", message)
        if _TO_BOOL.search(code) and not is_test(path):
            message = "Comparing with True or False by `==` is longer than the value itself."
            yield Finding(path, line, "equals-bool", "nit", message)
        if _IS_LITERAL.search(code):
            message = "`is` compares identity; for a literal, equality is meant. Use `==`."
            yield Finding(path, line, "is-literal", "question", message)
        if _ASSERT_PAIR.match(code):
            message = "This asserts a tuple, which is always true: the brackets make it one."
            yield Finding(path, line, "assert-tuple", "blocking", message)


def long_functions(change: Change) -> Iterator[Finding]:
    for file in change.files:
        module = tree(change, file.path)
        if module is None or is_test(file.path):
            continue
        ours = {added.number for added in file.added}
        for node in functions(module):
            end = node.end_lineno or node.lineno
            size = end - node.lineno + 1
            grown = len(ours & set(range(node.lineno, end + 1)))
            if size > LONG_FUNCTION and grown > size // 10:
                message = f"`{node.name}` is {size} lines long now. Is there a part with a name of its own?"
                yield Finding(file.path, node.lineno, "long-function", "nit", message)


def toothless_tests(change: Change) -> Iterator[Finding]:
    for file in change.files:
        module = tree(change, file.path)
        if module is None or not is_test(file.path):
            continue
        ours = {added.number for added in file.added}
        for node in functions(module):
            if not node.name.startswith("test") or node.lineno not in ours:
                continue
            if not any(_checks(inner) for inner in ast.walk(node)):
                message = f"`{node.name}` cannot fail unless an error is raised. Is that all it should check?"
                yield Finding(file.path, node.lineno, "toothless-test", "question", message)


def _checks(node: ast.AST) -> bool:
    if isinstance(node, ast.Assert):
        return not isinstance(node.test, ast.Constant)
    if isinstance(node, ast.Raise):
        return True
    if not isinstance(node, ast.Call):
        return False
    return _CHECKS.search(ast.unparse(node.func)) is not None


def _defaults(node: FunctionNode) -> Iterator[tuple[str, ast.expr]]:
    arguments = node.args
    placed = [*arguments.posonlyargs, *arguments.args]
    tail = placed[len(placed) - len(arguments.defaults) :]
    for argument, default in zip(tail, arguments.defaults, strict=True):
        yield argument.arg, default
    for argument, keyword in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if keyword is not None:
            yield argument.arg, keyword


def _is_mutable(node: ast.expr) -> bool:
    if isinstance(node, ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp):
        return True
    called = node.func if isinstance(node, ast.Call) else None
    return isinstance(called, ast.Name) and called.id in {"list", "dict", "set", "bytearray"}
