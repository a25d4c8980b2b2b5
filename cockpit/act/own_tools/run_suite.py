"""Run the tests of a tool that is being written, in the child process of the sandbox.

Tests are ``unittest`` cases, or functions ``test_…`` without parameters. This module imports nothing of
cockpit: it runs beside foreign code. See ``docs/reference/evolve.md``, rounds.
"""

from __future__ import annotations

import inspect
import io
import linecache
import sys
import unittest
from types import ModuleType
from typing import Any

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
    try:
        exec(compile(source, place, "exec", dont_inherit=True), tests.__dict__)  # noqa: S102 - in the sandbox
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
