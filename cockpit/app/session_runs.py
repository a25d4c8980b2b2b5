"""The sessions that this screen drives: at most one run of each, interrupted on request."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable

from cockpit.app.engine_client import Engine
from cockpit.core.errors import CockpitError, Stale
from cockpit.store.sessions import events, sessions


class Runs:
    """Runs by session. ``tell`` gets words for the person when a run ends in an error that the
    journal does not show; ``changed`` is called when one begins or ends."""

    def __init__(
        self, engine: Engine, tell: Callable[[str], None], changed: Callable[[], None]
    ) -> None:
        self._engine = engine
        self._tell = tell
        self._changed = changed
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()

    def active(self, session_id: str) -> bool:
        """True while this process drives the session."""
        return session_id in self._tasks

    @property
    def busy(self) -> bool:
        """True while this process drives any session."""
        return bool(self._tasks)

    def ensure(self, session_id: str) -> None:
        """Drive the session, if it is not driven: there may be something new for it."""
        if session_id in self._tasks:
            self._again.add(session_id)
            return
        self._tasks[session_id] = asyncio.create_task(
            self._run(session_id), name=f"session {session_id}"
        )
        self._changed()

    async def resume(self, session_id: str) -> None:
        """Go on with a session of before, unless it is over and nothing new was said."""
        try:
            session = await self._engine.store.read(
                lambda connection: sessions.load(connection, session_id)
            )
            if session.status != "completed" or await self._unheard(session_id):
                self.ensure(session_id)
        except CockpitError as error:
            self._tell(str(error))

    def interrupt(self, session_id: str) -> bool:
        """Stop the session within its wave; False when it is not driven here."""
        task = self._tasks.get(session_id)
        if task is None:
            return False
        self._again.discard(session_id)
        task.cancel()
        return True

    async def stop(self) -> None:
        """Interrupt all and wait until they have written down where they stand."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, session_id: str) -> None:
        try:
            if await self._elsewhere(session_id):
                return
            await self._engine.run(session_id, interactive=True)
            # Words that were said as the run came to rest would otherwise wait for the next ones.
            while session_id in self._again:
                self._again.discard(session_id)
                if await self._unheard(session_id):
                    await self._engine.run(session_id, interactive=True)
        except Stale:
            return  # another process drives it, and the journal tells what it does there
        except Exception as error:
            # Whatever the engine throws ends one session, never the screen.
            await self._failed(session_id, error)
        finally:
            self._tasks.pop(session_id, None)
            self._changed()

    async def _elsewhere(self, session_id: str) -> bool:
        """A role of a task, and an agent from outside, are run by whoever began them: in a tree that is
        not the person's checkout. Their words are kept for the next wave there."""
        session = await self._engine.store.read(
            lambda connection: sessions.load(connection, session_id)
        )
        if not session.role and session.task_type != sessions.EXTERNAL_AGENT:
            return False
        if session.status not in ("running", "waiting"):
            about = (
                f"{session.role} of {session.task_id}"
                if session.role
                else "that of an agent from outside"
            )
            self._tell(
                f"Nothing runs session {session_id} now ({about}); words to it are not read."
            )
        return True

    async def _unheard(self, session_id: str) -> bool:
        def look(connection: sqlite3.Connection) -> bool:
            source = sessions.load(connection, session_id).source
            return bool(events.count_waiting(connection, source))

        return await self._engine.store.read(look)

    async def _failed(self, session_id: str, error: Exception) -> None:
        try:
            session = await self._engine.store.read(
                lambda connection: sessions.load(connection, session_id)
            )
        except CockpitError:
            self._tell(str(error))
            return
        if session.status != "failed":  # a failed one says so in its conversation
            self._tell(str(error) or type(error).__name__)
