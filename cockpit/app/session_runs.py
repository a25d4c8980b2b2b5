"""The sessions that this screen drives: at most one run of each, interrupted on request.

Specified in ``docs/reference/loop.md``.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.core.errors import CockpitError, Stale
from cockpit.loop.permissions.withdrawal import QUIT
from cockpit.store.sessions import sessions
from cockpit.store.sessions.sessions import Session

if TYPE_CHECKING:
    from cockpit.app.state.screen_state import Views
    from cockpit.loop.runtime import Runtime

ACP = "acp"
"""The transport of sessions whose external agent cockpit drives."""
_STOPPING = "stopping"


class SessionRuns:
    """Runs by session.

    ``show_error`` gets text for the user when a run ends in an error that the journal does not show.
    ``on_change`` is called when a run starts or ends.
    """

    def __init__(
        self, engine: Runtime, show_error: Callable[[str], None], on_change: Callable[[], None]
    ) -> None:
        self._engine = engine
        self._show_error = show_error
        self._on_change = on_change
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._begun: set[str] = set()
        """Sessions whose task has begun: a task that is cancelled before never runs at all."""
        self._interrupted: set[str] = set()
        """Sessions that were interrupted before their task began."""
        self._ending: set[str] = set()
        """Sessions that are being stopped: an agent may take seconds to answer."""
        self._run_again: set[str] = set()
        self._stopping = False

    def is_running(self, session_id: str) -> bool:
        """Return True while this process drives the session."""
        return session_id in self._tasks

    def is_stopping(self, session_id: str) -> bool:
        """Return True from the interruption of a session until its run has ended."""
        return session_id in self._ending

    def show_stopping(self, views: Views, session_id: str) -> Views:
        """Return the views, whose header and rows say so while the runs of sessions are stopping."""
        if not self._ending:
            return views
        rows = tuple(
            replace(row, state=_STOPPING) if row.key in self._ending else row
            for row in views.board.rows
        )
        views = replace(views, board=replace(views.board, rows=rows))
        if not self.is_stopping(session_id):
            return views
        return replace(views, header=replace(views.header, state=_STOPPING))

    @property
    def any_running(self) -> bool:
        """True while this process drives any session."""
        return bool(self._tasks)

    def ensure_running(self, session_id: str) -> None:
        """Drive the session; one that already runs looks for new events before it ends."""
        if session_id in self._tasks:
            self._run_again.add(session_id)
            return
        self._tasks[session_id] = asyncio.create_task(
            self._run(session_id), name=f"session {session_id}"
        )
        self._on_change()

    async def resume(self, session_id: str) -> None:
        """Resume an earlier session, unless it is completed and has no new events."""
        try:
            session = await self._load(session_id)
            if session.status != "completed" or await self._has_new_events(session_id):
                self.ensure_running(session_id)
        except CockpitError as error:
            self._show_error(str(error))

    def interrupt(self, session_id: str) -> bool:
        """Stop the session within its wave; return False when it is not driven here."""
        task = self._tasks.get(session_id)
        if task is None:
            return False
        self._run_again.discard(session_id)
        self._cancel(session_id)
        return True

    async def stop(self) -> None:
        """Interrupt all sessions and wait until they have saved their state."""
        self._stopping = True
        tasks = list(self._tasks.values())
        for session_id in list(self._tasks):
            self._cancel(session_id, QUIT)
        await asyncio.gather(*tasks, return_exceptions=True)

    def _cancel(self, session_id: str, why: str = "") -> None:
        """Cancel the session's task; one that has not begun is cancelled by its first step."""
        self._ending.add(session_id)
        self._on_change()
        if session_id in self._begun:
            self._tasks[session_id].cancel(why)
        else:
            self._interrupted.add(session_id)

    async def _run(self, session_id: str) -> None:
        self._begun.add(session_id)
        try:
            if session_id in self._interrupted:
                raise asyncio.CancelledError
            if await self._is_driven_elsewhere(session_id):
                return
            await self._engine.run(session_id, interactive=True)
            # A message that came as the run ended would otherwise wait for the next one.
            while session_id in self._run_again:
                self._run_again.discard(session_id)
                if await self._has_new_messages(session_id):
                    await self._engine.run(session_id, interactive=True)
        except asyncio.CancelledError:
            # Also before the engine had the session, which would stay running for ever.
            await asyncio.shield(self._stop_unowned(session_id))
            raise
        except Stale:
            return  # another process drives it, and the journal shows what happens there
        except Exception as error:
            # An error of the engine ends one session, never the screen.
            await self._report_failure(session_id, error)
        finally:
            self._tasks.pop(session_id, None)
            self._begun.discard(session_id)
            self._ending.discard(session_id)
            self._interrupted.discard(session_id)
            if session_id in self._run_again and not self._stopping:
                # A message that came while the run was being interrupted.
                self._run_again.discard(session_id)
                self.ensure_running(session_id)
            self._on_change()

    async def _is_driven_elsewhere(self, session_id: str) -> bool:
        """Return True for the session of a role or of an external agent.

        The process that started it drives it, in a worktree that is not the user's checkout. Messages
        are kept for its next wave.
        """
        session = await self._load(session_id)
        if not session.role and session.task_type != sessions.EXTERNAL_AGENT:
            return False
        if session.status not in ("running", "waiting"):
            owner = f"{session.role} of {session.task_id}" if session.role else "an external agent"
            self._show_error(
                f"Session {session_id} ({owner}) is not running; it does not read messages."
            )
        return True

    async def _stop_unowned(self, session_id: str) -> None:
        await self._engine.store.write(lambda tx: sessions.stop_unowned(tx, session_id))

    async def _has_new_messages(self, session_id: str) -> bool:
        """Whether there is something to run for; an external agent's driver looks for messages itself."""
        return bool((await self._load(session_id)).transport == ACP) or await self._has_new_events(
            session_id
        )

    async def _has_new_events(self, session_id: str) -> bool:
        def look(connection: sqlite3.Connection) -> bool:
            from cockpit.store.sessions import events  # late: after the first frame

            source = sessions.load(connection, session_id).source
            return bool(events.count_new(connection, source))

        return await self._engine.store.read(look)

    async def _report_failure(self, session_id: str, error: Exception) -> None:
        try:
            session = await self._load(session_id)
        except CockpitError:
            self._show_error(str(error))
            return
        if session.status != "failed":  # the conversation of a failed session shows its error
            self._show_error(str(error) or type(error).__name__)

    async def _load(self, session_id: str) -> Session:
        return await self._engine.store.read(
            lambda connection: sessions.load(connection, session_id)
        )
