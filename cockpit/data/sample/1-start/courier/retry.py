"""Trying again, later each time."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

ATTEMPTS = 5


class GaveUp(Exception):
    """Every attempt failed; the last failure is the cause."""


def backoff(attempt: int) -> float:
    """Seconds to wait before attempt number ``attempt`` (the first is 1, and does not wait)."""
    return 0.0 if attempt <= 1 else min(30.0, 0.5 * 2 ** (attempt - 2))


def retry(call: Callable[[], T], *, sleep: Callable[[float], None] = time.sleep) -> T:
    """Call ``call`` until it succeeds. Raises :class:`GaveUp` after :data:`ATTEMPTS` failures."""
    failure: OSError | None = None
    for attempt in range(1, ATTEMPTS + 1):
        sleep(backoff(attempt))
        try:
            return call()
        except OSError as error:
            failure = error
    raise GaveUp(f"{ATTEMPTS} attempts failed") from failure
