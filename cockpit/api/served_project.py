"""The project that a server serves: its store, and, when first needed, the engine and its sessions.

Routes that only read and decide never load the engine. A session that is started over HTTP, or
wakes up for a message, runs in the server's process. See ``docs/reference/http.md``, sessions.
"""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from cockpit.chains.chain_process import ChainCommandFailed, start_chain_command
from cockpit.chains.create_chain import ChainRequest, find_requested
from cockpit.core.errors import CockpitError, IllegalTransition, Stale
from cockpit.core.project_paths import ProjectPaths
from cockpit.core.secrets import mask
from cockpit.loop.decisions.approval_effects import find_approval_effect
from cockpit.loop.permissions.withdrawal import QUIT
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.db.database import Store
from cockpit.store.sessions import events, proposals, sessions

if TYPE_CHECKING:
    from cockpit.loop.runtime import Runtime

ACP = "acp"
_LOOK_S = 0.1
"""Seconds between two looks for a chain that starts."""
MOST_RUNNING = 16
"""Sessions that one server runs at the same time."""


class TooManySessions(CockpitError):
    """The server runs as many sessions as it may."""

    code = "too_many_sessions"


class ServedProject:
    """One project behind a server. ``place`` None: the server has no checkout, and runs no sessions."""

    def __init__(
        self, store: Store, settings: RuntimeSettings, place: ProjectPaths | None = None
    ) -> None:
        self.store = store
        self.settings = settings
        self.place = place
        self._resources = AsyncExitStack()
        self._runtime: Runtime | None = None
        self._opening = asyncio.Lock()
        self.starting = asyncio.Lock()
        """One session begins at a time: two requests with the same idempotency key make one."""
        self.starting_chain = asyncio.Lock()
        """One process of a chain starts at a time, however many requests come."""
        self._runs: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()
        self._closing = False

    @property
    def has_engine(self) -> bool:
        """Whether the server can run sessions."""
        return self.place is not None and not self._closing

    async def run_chain(self, arguments: Sequence[str], request: ChainRequest) -> str:
        """Run ``cockpit ARGUMENTS`` in a process that outlives the server; return the chain's id.

        Returns once that process has created the chain. Raises ``ChainCommandFailed`` where it
        ends before, and ``IllegalTransition`` for a server without a checkout.
        """
        if self.place is None or self._closing:
            raise IllegalTransition(
                "This server runs no chains: it has no checkout, or is stopping. Run `cockpit"
                " serve` in a checkout."
            )
        words = ("--requested-by", request.by, "--request", request.request)
        command = await start_chain_command(self.place, arguments, words)
        ended = asyncio.ensure_future(command.wait())
        try:
            while True:
                was_over = ended.done()
                chain_id = await self.store.read(
                    lambda connection: find_requested(connection, request.request)
                )
                if chain_id:
                    return chain_id
                if was_over:
                    await ended
                    raise ChainCommandFailed("The process of the chain ended and started none.")
                await asyncio.wait([ended], timeout=_LOOK_S)
        finally:
            ended.cancel()

    async def runtime(self) -> Runtime:
        """Return the engine, which is opened for the first caller. Raises ``IllegalTransition``."""
        async with self._opening:
            if self.place is None or self._closing:
                raise IllegalTransition(
                    "This server runs no sessions: it has no checkout, or is stopping. Run"
                    " `cockpit serve` in a checkout."
                )
            if self._runtime is None:
                from cockpit.loop.runtime import runtime_over

                self._runtime = await self._resources.enter_async_context(
                    runtime_over(self.store, self.place, self.settings)
                )
            return self._runtime

    async def carry_out(self, proposal_id: str) -> None:
        """Do what an approval queued outside any wave; without a checkout the next engine does it."""
        if self.place is None:
            return
        proposal = await self.store.read(lambda connection: proposals.load(connection, proposal_id))
        if find_approval_effect(self.settings.approval_effects, proposal) is not None:
            await (await self.runtime()).carry_out(proposal_id)

    def is_running(self, session_id: str) -> bool:
        """Whether this server runs the session."""
        return session_id in self._runs

    def require_room(self) -> None:
        """Raise :class:`TooManySessions` where no further session may run."""
        if len(self._runs) >= MOST_RUNNING:
            raise TooManySessions(
                f"This server runs {len(self._runs)} sessions, as many as it may. Wait for one to end."
            )

    async def ensure_running(self, session_id: str, *, interactive: bool | None = None) -> None:
        """Run the session; one that already runs looks for new messages before it ends.

        ``interactive`` False ends it with its task; None leaves that as it is.
        """
        runtime = await self.runtime()
        if session_id in self._runs:
            self._again.add(session_id)
            return
        self.require_room()
        self._runs[session_id] = asyncio.create_task(
            self._run(runtime, session_id, interactive), name=f"session {session_id}"
        )

    async def close(self) -> None:
        """Interrupt every session, wait until its state is saved, and close the engine."""
        self._closing = True
        tasks = list(self._runs.values())
        for task in tasks:
            task.cancel(QUIT)
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._resources.aclose()

    async def _run(self, runtime: Runtime, session_id: str, interactive: bool | None) -> None:
        try:
            await runtime.run(session_id, interactive=interactive)
            # A message that came as the run ended would otherwise wait for the next one.
            while session_id in self._again:
                self._again.discard(session_id)
                if await self.store.read(lambda connection: _has_news(connection, session_id)):
                    await runtime.run(session_id, interactive=interactive)
        except Stale:
            return  # another process runs it, and the journal shows what happens there
        except Exception as error:
            # An error of the engine ends one session, never the server; its session is journalled as failed.
            print(mask(f"cockpit: session {session_id}: {error}"), file=sys.stderr)  # noqa: T201 - the server's log
        finally:
            self._runs.pop(session_id, None)
            self._again.discard(session_id)


def _has_news(connection: sqlite3.Connection, session_id: str) -> bool:
    session = sessions.load(connection, session_id)
    return session.transport == ACP or bool(events.count_new(connection, session.source))
