"""Removing the branches of runs that were taken over, here and in the shared repository.

What cannot be removed stays: it takes room and nothing else, and the chain's next process tries again. See
``docs/reference/remote-workers.md``.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from cockpit.chains.remote.merge_remote_work import local_branch
from cockpit.chains.remote.message_types import SHARED_PREFIX, base_branch
from cockpit.store.chains import remote_runs
from cockpit.store.chains.remote_runs import RemoteRun
from cockpit.tasks.git import WorktreeError, shared_git, try_git, worktree_lock
from cockpit.tasks.task_context import TaskContext

_HEADS = "refs/heads/"
_WORK = re.compile(rf"{_HEADS}{SHARED_PREFIX}(.+)-([0-9]{{1,9}})-([0-9]{{1,9}})")
_MOST_NAMES: Final = 500
"""Branches that one push removes: a command has room for so many words."""


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
