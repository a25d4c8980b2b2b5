"""Trying again, as long as the budget lasts."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class GaveUp(Exception):
    """The budget is used up; the last failure is the cause."""


def delay(attempt: int, base: float) -> float:
    """Seconds to wait before attempt number ``attempt``."""
    return 0.0 if attempt <= 1 else base * 2 ** (attempt - 2)


def retry(
    call: Callable[[], T],
    budget: float,
    *,
    seen: list[str] = [],
    sleep: Callable[[float], None] = time.sleep,
) -> T:
    """Call ``call`` until it succeeds or ``budget`` seconds of waiting are used up."""
    attempt = 1
    while True:
        try:
            return call()
        except:
            seen.append(f"attempt {attempt}")
        attempt += 1
        wait = delay(attempt, 0.5)
        if wait > budget:
            raise GaveUp(f"{len(seen)} attempts failed")
        budget -= wait
        sleep(wait)
