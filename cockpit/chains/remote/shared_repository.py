"""The repository that all machines share, over a network that fails now and then, and its branches.

What cannot be removed of them stays: it takes room and nothing else, and the next process tries again.

See ``docs/reference/remote-workers.md``.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from pathlib import Path
from typing import Final

from cockpit.chains.remote.message_types import SHARED_PREFIX, base_branch
from cockpit.core.clock import Clock
from cockpit.store.chains import remote_runs
from cockpit.store.chains.remote_runs import RemoteRun
from cockpit.tasks.git import WorktreeError, shared_git, try_git, worktree_lock
from cockpit.tasks.task_context import TaskContext
from cockpit.tasks.worktree import branch_prefix

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


_HEADS = "refs/heads/"
_WORK = re.compile(rf"{_HEADS}{SHARED_PREFIX}(.+)-([0-9]{{1,9}})-([0-9]{{1,9}})")
_MOST_NAMES: Final = 500
"""Branches that one push removes: a command has room for so many words."""


async def local_branch(context: TaskContext, remote: RemoteRun) -> str:
    """Return the coordinator's branch for a run that came back."""
    prefix = await branch_prefix(context.place)
    return f"{prefix}{remote.task_id}-{remote.run}-{remote.fence}"


async def remove_merged(context: TaskContext, remote: RemoteRun) -> None:
    """Remove the branch here of a run whose commits the chain's branch has."""
    if remote.result.get("commit") != remote.base_commit:
        branch = await local_branch(context, remote)
        # Unlike update-ref, this leaves a branch alone that the user has checked out.
        async with worktree_lock(context.place):
            await try_git(context.place.home, "branch", "--quiet", "-D", branch)


async def remove_shared(context: TaskContext, repository: str, chain_id: str) -> None:
    """Remove from the shared repository all that is over of the chain, also what came late."""
    home = context.place.home
    with suppress(WorktreeError):
        words = ("ls-remote", "--refs", repository, f"{_HEADS}{SHARED_PREFIX}*")
        text = await shared_git(home, *words)
        listed = [line.partition("\t")[2] for line in text.splitlines()]
        names = context.store.read_now(lambda c: _select_over(c, chain_id, listed))
        for start in range(0, len(names), _MOST_NAMES):
            gone = (f":{name}" for name in names[start : start + _MOST_NAMES])
            await shared_git(home, "push", "--quiet", repository, *gone)


def _select_over(connection: sqlite3.Connection, chain_id: str, listed: Sequence[str]) -> list[str]:
    base = _HEADS + base_branch(chain_id)
    is_done = not remote_runs.select_open(connection, 1)
    over = [base] if is_done and base in listed else []
    for name in listed:
        if match := _WORK.fullmatch(name):
            remote = remote_runs.find(connection, match[1], int(match[2]))
            if remote is not None and remote.state == "taken":
                over.append(name)
    return over
