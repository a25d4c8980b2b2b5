"""Run the tests of a tool that is being written, in the child process of the sandbox.

Tests are ``unittest`` cases, or functions ``test_…`` without parameters. This module imports nothing of
cockpit: it runs beside foreign code. See ``docs/reference/evolve.md``, rounds.
"""

from __future__ import annotations

import ast
import inspect
import io
import linecache
import operator
import sys
import unittest
from types import ModuleType
from typing import Any
from unittest.util import safe_repr

_MOST_NAMED = 20
_LONGEST = 1_500


def run_suite(module: ModuleType, name: str, source: str) -> dict[str, Any]:
    """Run the tests of ``source``, which import ``module`` as ``name``.

    Returns how many ``ran`` and were ``skipped``, and ``failed``: the name and the trace's end of each
    failure. Tests that cannot be loaded at all are one failure named ``(loading)``.
    """
    sys.modules[name] = module
    place = f"test_{name}.py"
    linecache.cache[place] = (len(source), None, source.splitlines(True), place)
    tests = ModuleType(place.removesuffix(".py"))
    tests.__file__ = place
    tests.__dict__[_NAME] = _Sides()
    try:
        exec(compile(_show_sides(source, place), place, "exec", dont_inherit=True), tests.__dict__)  # noqa: S102 - in the sandbox
    except BaseException as error:
        return {
            "ran": 0,
            "skipped": 0,
            "failed": [["(loading)", f"{type(error).__name__}: {error}"[:_LONGEST]]],
        }
    suite = unittest.defaultTestLoader.loadTestsFromModule(tests)
    for attribute, value in vars(tests).items():
        is_plain = inspect.isfunction(value) and not inspect.signature(value).parameters
        if attribute.startswith("test") and is_plain:
            suite.addTest(unittest.FunctionTestCase(value, description=attribute))
    result = unittest.TextTestRunner(stream=io.StringIO(), verbosity=0).run(suite)
    failed = [*result.failures, *result.errors]
    failed += [
        (case, "it passed though it is marked as failing") for case in result.unexpectedSuccesses
    ]
    return {
        "ran": result.testsRun,
        "skipped": len(result.skipped) + len(result.expectedFailures),
        "failed": [
            [case.shortDescription() or case.id(), trace.strip()[-_LONGEST:]]
            for case, trace in failed[:_MOST_NAMED]
        ],
    }


_NAME = "__cockpit_sides__"
_COMPARED = {
    ast.Eq: ("==", operator.eq),
    ast.NotEq: ("!=", operator.ne),
    ast.Lt: ("<", operator.lt),
    ast.LtE: ("<=", operator.le),
    ast.Gt: (">", operator.gt),
    ast.GtE: (">=", operator.ge),
    ast.Is: ("is", operator.is_),
    ast.IsNot: ("is not", operator.is_not),
    ast.In: ("in", lambda left, right: left in right),
    ast.NotIn: ("not in", lambda left, right: left not in right),
}
_SIGNS = dict(_COMPARED.values())


class _Sides(unittest.TestCase):
    """Remembers the sides of the last assertion that was made, for the message when it fails."""

    maxDiff = 2_000

    def compare(self, sign: str, left: Any, right: Any) -> Any:
        self.last: tuple[Any, ...] = (sign, left, right)
        return _SIGNS[sign](left, right)

    def value(self, value: Any) -> Any:
        self.last = (value,)
        return value

    def explain(self, message: Any = None) -> str:
        """Return both sides as unittest shows them, under the test's own message."""
        if len(self.last) == 1:
            text = f"the value is {safe_repr(self.last[0])}"
        else:
            sign, left, right = self.last
            text = f"{safe_repr(left)} {sign} {safe_repr(right)} does not hold"
            if sign == "==":
                try:
                    self.assertEqual(left, right)
                except AssertionError as error:
                    text = str(error)
        return text if message is None else f"{message}: {text}"


class _AssertRewriter(ast.NodeTransformer):
    """Makes each ``assert`` remember its sides; each is evaluated once, and the message only on failure."""

    def visit_Assert(self, node: ast.Assert) -> ast.Assert:
        test = node.test
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            sign = ast.Constant(_COMPARED[type(test.ops[0])][0])
            node.test = _call("compare", sign, test.left, test.comparators[0])
        else:
            node.test = _call("value", test)
        node.msg = _call("explain", *([node.msg] if node.msg else []))
        return node


def _call(method: str, *arguments: ast.expr) -> ast.expr:
    return ast.Call(
        ast.Attribute(ast.Name(_NAME, ast.Load()), method, ast.Load()), [*arguments], []
    )


def _show_sides(source: str, place: str) -> ast.Module:
    rewritten = _AssertRewriter().visit(ast.parse(source, place))
    module: ast.Module = ast.fix_missing_locations(rewritten)
    return module
