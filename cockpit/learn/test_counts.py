"""The counts of one run of tests, as a runner's output tells them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Counts:
    """``failed`` includes errors. ``first`` names the first test that failed, where it is told.
    ``broken`` is a failure that no count shows, such as a file of tests that could not be loaded."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    first: str = ""
    ran: bool = True
    broken: bool = False
    counted: str = "tests"
