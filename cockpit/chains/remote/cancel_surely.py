"""Ending tasks of the event loop for certain.

A cancellation that arrives in the moment in which ``asyncio.wait_for`` has its result is lost in Python 3.11:
the task continues, and whoever waits for its end waits for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

AGAIN_S = 0.05
"""Seconds after which a task that has not ended is cancelled again."""


async def end_coroutines(tasks: Iterable[asyncio.Future[Any]]) -> None:
    """Cancel tasks until they have ended. Their results and errors are left to whoever asks for them."""
    pending = {task for task in tasks if not task.done()}
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=AGAIN_S)
