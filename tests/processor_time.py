"""The processor time of each test and of the programs that it waits for; the dearest at the end."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Generator
from typing import Any

import pytest

_NAME = "processor time in seconds"
_SHOWN = 10


def _used() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Note where the time stands before the test."""
    item.stash[_BEFORE] = _used()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: Any) -> Generator[None, Any, Any]:
    """Give the report of each phase its share; the last one carries the whole of the test."""
    report = yield
    if call.when == "teardown":
        report.user_properties.append((_NAME, _used() - item.stash[_BEFORE]))
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the ten dearest functions, all cases of one together."""
    spent: dict[str, float] = defaultdict(float)
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, value in getattr(report, "user_properties", ()):
                if name == _NAME:
                    spent[report.nodeid.partition("[")[0]] += value
    if not spent:
        return
    terminalreporter.section(f"{sum(spent.values()):.0f} CPU s in tests; the dearest functions")
    for nodeid, seconds in sorted(spent.items(), key=lambda each: -each[1])[:_SHOWN]:
        terminalreporter.line(f"{seconds:7.1f}  {nodeid}")
    path = os.environ.get("COCKPIT_TEST_TIMES")
    if path:
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(f"{value:.3f} {nodeid}\n" for nodeid, value in sorted(spent.items()))


_BEFORE = pytest.StashKey[float]()
