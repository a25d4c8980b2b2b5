"""The repository that all machines share, over a network that fails now and then.

See ``docs/reference/remote-workers.md``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path

from cockpit.core.clock import Clock
from cockpit.tasks.git import WorktreeError, shared_git

Within = AbstractAsyncContextManager[None]

TRIES = 6
"""How often a repository that does not answer is asked: for half a minute, each time later."""
_FIRST_WAIT_S = 1.0
_UNREACHABLE = re.compile(
    r"could not read from remote|unable to (?:access|connect)|hung up|early EOF|connection|took longer"
    r"|repository .* (?:does not exist|not found)",
    re.IGNORECASE,
)


def is_unreachable(error: WorktreeError) -> bool:
    """Whether git could not talk to the repository, rather than that it refused."""
    return _UNREACHABLE.search(str(error)) is not None


async def ask_shared(
    clock: Clock, cwd: Path, *args: str, within: Callable[[], Within] = nullcontext
) -> str:
    """As :func:`~cockpit.tasks.git.shared_git`, again and again while the repository does not answer.

    Each try is made ``within`` a lock, which is free in between. Raises ``WorktreeError`` where git refuses,
    or after :data:`TRIES`.
    """
    wait_s = _FIRST_WAIT_S
    for _ in range(TRIES - 1):
        try:
            async with within():
                return await shared_git(cwd, *args)
        except WorktreeError as error:
            if not is_unreachable(error):
                raise
        await clock.sleep(wait_s)
        wait_s *= 2
    async with within():
        return await shared_git(cwd, *args)
