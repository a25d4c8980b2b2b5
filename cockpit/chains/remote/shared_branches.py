"""Removing the branches of runs that were taken over: many by one push, and those here by one git.

Each push makes the repository list all of its branches, so one for every task would take longer the more
tasks wait. See ``docs/reference/remote-workers.md``.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from cockpit.chains.remote.merge_remote_work import local_branch
from cockpit.chains.remote.message_types import SHARED_PREFIX, base_branch, work_branch
from cockpit.store.chains import remote_runs
from cockpit.store.chains.remote_runs import RemoteRun
from cockpit.tasks.git import WorktreeError, shared_git, try_git, worktree_lock
from cockpit.tasks.task_context import TaskContext

AT_ONCE: Final = 32
"""Runs whose branches one push removes while the chain goes on."""
_HEADS = "refs/heads/"
_WORK = re.compile(rf"{_HEADS}{SHARED_PREFIX}(.+)-([0-9]{{1,9}})-([0-9]{{1,9}})")


class SharedBranches:
    """The branches of a chain in the shared repository, which go once nobody needs them.

    What cannot be removed stays: it takes room and nothing else, and the chain's end tries again.
    """

    def __init__(self, context: TaskContext, repository: str, chain_id: str) -> None:
        self._context = context
        self._repository = repository
        self._chain_id = chain_id
        self._over: list[RemoteRun] = []
        self._merged: list[str] = []

    async def note_over(self, remote: RemoteRun, *, is_merged: bool = False) -> None:
        """Remove what the run's workers pushed, together with that of others; here, what is merged."""
        self._over.append(remote)
        if is_merged and remote.result.get("commit") != remote.base_commit:
            self._merged.append(await local_branch(self._context, remote))
        if len(self._over) < AT_ONCE:
            return
        over, self._over = self._over, []
        await self._remove_merged()
        names = {
            _HEADS + work_branch(each.task_id, each.run, fence)
            for each in over
            for fence in range(1, each.fence + 1)
        }
        listed = await self._list()
        await self._remove([name for name in listed if name in names])

    async def remove_rest(self) -> None:
        """Remove, at the end, all that is over, also what came late, and where the tasks began."""
        await self._remove_merged()
        if listed := await self._list():
            read = self._context.store.read_now
            await self._remove(read(lambda c: self._select_over(c, listed)))

    def _select_over(self, connection: sqlite3.Connection, listed: Sequence[str]) -> list[str]:
        base = _HEADS + base_branch(self._chain_id)
        is_done = not remote_runs.select_open(connection, 1)
        over = [base] if is_done and base in listed else []
        for name in listed:
            if match := _WORK.fullmatch(name):
                remote = remote_runs.find(connection, match[1], int(match[2]))
                if remote is not None and remote.state == "taken":
                    over.append(name)
        return over

    async def _remove_merged(self) -> None:
        """Remove the branches here whose commits the chain's branch has."""
        merged, self._merged = self._merged, []
        if merged:
            # Unlike update-ref, this leaves a branch alone that the user has checked out.
            async with worktree_lock(self._context.place):
                await try_git(self._context.place.home, "branch", "--quiet", "-D", *merged)

    async def _list(self) -> list[str]:
        with suppress(WorktreeError):
            words = ("ls-remote", "--refs", self._repository, f"{_HEADS}{SHARED_PREFIX}*")
            text = await shared_git(self._context.place.home, *words)
            return [line.partition("\t")[2] for line in text.splitlines()]
        return []

    async def _remove(self, names: Sequence[str]) -> None:
        for start in range(0, len(names), _MOST_NAMES):
            gone = (f":{name}" for name in names[start : start + _MOST_NAMES])
            with suppress(WorktreeError):
                home = self._context.place.home
                await shared_git(home, "push", "--quiet", self._repository, *gone)


_MOST_NAMES = 500
"""Branches that one push removes: a command has room for so many words."""
