"""The state of the screen: read from the tables, and read again as the journal grows.

``docs/reference/screen.md``
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Coroutine
from functools import partial

from cockpit.app.state.chains import read_chain
from cockpit.app.state.screen_state import Named, State, read_changes, read_state
from cockpit.app.state.session_fold import OpenSession
from cockpit.core.errors import CockpitError
from cockpit.store.db.database import Store
from cockpit.store.journal.follow import follow
from cockpit.store.journal.journal import READ
from cockpit.store.journal.journal import session_rows as read_rows
from cockpit.store.sessions import session_list

SLICE = 64
"""Rows folded before the event loop runs again: well under a millisecond."""

_RETRY_S = 1.0


class JournalFeed:
    """The state of the screen, kept up to date.

    ``followed`` returns the session that the screen follows, '' for none. ``on_change`` is called after
    every slice, ``on_error`` with text for the user when the store cannot be read.
    """

    def __init__(
        self,
        store: Store,
        on_change: Callable[[], None],
        on_error: Callable[[str], None],
        followed: Callable[[], str],
    ) -> None:
        self.state = State()
        self._store = store
        self._on_change = on_change
        self._on_error = on_error
        self._followed = followed
        self._is_read = False
        self._attempted = asyncio.Event()
        """Set once the state was read, or could not be read."""
        self._reading: dict[str, asyncio.Task[None]] = {}

    @property
    def ready(self) -> bool:
        """True once the state was read and contains the followed session.

        Asking for it reads a session that is followed for the first time.
        """
        session_id = self._followed()
        if not self._is_read:
            return False
        if session_id and not self.state.is_open(session_id):
            self.open_session(session_id)
            return False
        return True

    async def run(self) -> None:
        """Read the state and follow the journal until cancelled; after an error, try again."""
        try:
            while True:
                try:
                    await self._follow()
                except (CockpitError, sqlite3.Error, OSError) as error:
                    self._attempted.set()
                    self._on_error(f"Cannot read the journal: {error}. Trying again.")
                    await self._store.clock.sleep(_RETRY_S)
        finally:
            for task in self._reading.values():
                task.cancel()

    async def wait_for_state(self, seconds: float) -> None:
        """Wait until the state was read for the first time, or could not be read; at most ``seconds``."""
        try:
            # Not wait_for: on 3.11 it can swallow a cancellation that meets the event.
            async with asyncio.timeout(seconds):
                await self._attempted.wait()
        except TimeoutError:
            return  # the screen shows its state when it is there

    def open_session(self, session_id: str) -> None:
        """Read the conversation of a session, unless it is there or being read."""
        if self._is_read and not self.state.is_open(session_id):
            self._begin(session_id, partial(self._open_session, session_id))

    def open_chain(self, chain_id: str) -> None:
        """Read the tasks of a chain that ended, unless they are being read."""
        self._begin(chain_id, partial(self._open_chain, chain_id))

    # Reading

    async def _follow(self) -> None:
        if not self._is_read:
            self.state = await self._store.read(self._read_state)
            self._is_read = True
            self._attempted.set()
            self._on_change()
        if (reader := self.state.unread) is not None:
            while await self._store.read(reader.read_part):
                continue
            self.state.show_work(reader.work)
            self._on_change()
        async for batch in follow(self._store, after=self.state.seq):
            named = self.state.name_changes(batch)
            if named != Named():
                now = self._store.clock.now()
                self.state.take(await self._store.read(partial(read_changes, named=named, now=now)))
            for start in range(0, len(batch), SLICE):
                self.state.fold(batch[start : start + SLICE])
                self._on_change()
                await asyncio.sleep(0)

    def _read_state(self, connection: sqlite3.Connection) -> State:
        return read_state(connection, self._followed(), self._store.clock.now())

    async def _open_session(self, session_id: str) -> None:
        """Fold a session's rows up to the state's own last row."""
        in_chain = await self._store.read(partial(session_list.is_in_chain, session_id=session_id))
        session, folded = OpenSession(session_id, in_chain=in_chain), 0
        while (until := self.state.seq) > folded:
            look = partial(read_rows, session_id=session_id, until=until, after=folded)
            rows = await self._store.read(look)
            for start in range(0, len(rows), SLICE):
                session.fold(rows[start : start + SLICE])
                await asyncio.sleep(0)
            folded = until if len(rows) < READ else rows[-1].seq
        self.state.open_session(session)

    async def _open_chain(self, chain_id: str) -> None:
        now = self._store.clock.now()
        for chain in await self._store.read(partial(read_chain, chain_id=chain_id, now=now)):
            self.state.put_chain(chain)

    def _begin(self, name: str, read: Callable[[], Coroutine[None, None, None]]) -> None:
        if name in self._reading:
            return
        task = self._reading[name] = asyncio.create_task(self._read(read))
        task.add_done_callback(lambda _: self._reading.pop(name, None))

    async def _read(self, read: Callable[[], Coroutine[None, None, None]]) -> None:
        try:
            await read()
        except (CockpitError, sqlite3.Error, OSError) as error:
            self._on_error(f"Cannot read the journal: {error}.")
        self._on_change()
