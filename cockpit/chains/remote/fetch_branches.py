"""Fetching what workers pushed: all branches that wait are fetched by one git.

A fetch reads every branch of the project and asks whether all objects are there, so one for each task would
take longer the more tasks there are. See ``docs/reference/remote-workers.md``.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final

from cockpit.chains.remote.shared_repository import ask_shared
from cockpit.tasks.git import WorktreeError, note_parents, worktree_lock
from cockpit.tasks.task_context import TaskContext

AT_ONCE: Final = 100
"""Branches that one git fetches."""


class BranchFetcher:
    """Fetches branches of the shared repository into the coordinator's."""

    def __init__(self, context: TaskContext, repository: str) -> None:
        self._context = context
        self._repository = repository
        self._waiting: list[tuple[str, str, asyncio.Future[None]]] = []
        self._turn = asyncio.Lock()

    async def fetch(self, name: str, branch: str) -> None:
        """Fetch the branch ``name`` as ``branch``, with those that wait meanwhile.

        Raises ``WorktreeError`` where this one cannot be fetched.
        """
        done = asyncio.get_running_loop().create_future()
        self._waiting.append((name, branch, done))
        async with self._turn:
            if not done.done():  # else the one before fetched it, too
                taken, self._waiting = self._waiting[:AT_ONCE], self._waiting[AT_ONCE:]
                await self._fetch_many(taken)
        await done

    async def _fetch_many(self, taken: list[tuple[str, str, asyncio.Future[None]]]) -> None:
        try:
            await self._fetch([(name, branch) for name, branch, _ in taken])
        except WorktreeError as error:
            for name, branch, done in taken:
                if done.done():
                    continue
                if len(taken) == 1:
                    done.set_exception(error)
                else:  # one that is not there keeps git from all of them
                    await self._fetch_many([(name, branch, done)])
        except BaseException:
            self._waiting += [each for each in taken if not each[2].done()]
            raise
        else:
            for _, _, done in taken:
                if not done.done():
                    done.set_result(None)

    async def _fetch(self, branches: list[tuple[str, str]]) -> None:
        home = self._context.place.home
        await ask_shared(
            self._context.store.clock,
            home,
            *("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", self._repository),
            *(f"+refs/heads/{name}:refs/heads/{branch}" for name, branch in branches),
            within=partial(worktree_lock, self._context.place),
        )
        await note_parents(home, [f"refs/heads/{branch}" for _, branch in branches])
