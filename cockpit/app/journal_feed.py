"""Follow the journal and fold its rows into the state of the screen, slice by slice."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable

from cockpit.app.projection.fold import State
from cockpit.core.errors import CockpitError
from cockpit.store.db.database import Store
from cockpit.store.journal import journal
from cockpit.store.journal.follow import follow

SLICE = 64
"""Rows folded before the event loop runs again: well under a millisecond."""

_RETRY_S = 1.0


class JournalFeed:
    """The state of the screen, kept up to date.

    ``ready`` turns True once the rows that existed at the start are folded. ``on_change`` is called after
    every slice, ``on_error`` with text for the user when the journal cannot be read.
    """

    def __init__(
        self, store: Store, on_change: Callable[[], None], on_error: Callable[[str], None]
    ) -> None:
        self.state = State()
        self.ready = False
        self._store = store
        self._on_change = on_change
        self._on_error = on_error

    async def run(self) -> None:
        """Follow the journal until cancelled; after an error, try again."""
        while True:
            try:
                await self._follow()
            except (CockpitError, sqlite3.Error, OSError) as error:
                self._on_error(f"Cannot read the journal: {error}. Trying again.")
                await self._store.clock.sleep(_RETRY_S)

    async def _follow(self) -> None:
        last = await self._store.read(journal.last_seq)
        self._note_progress(last)
        async for batch in follow(self._store, after=self.state.seq):
            for start in range(0, len(batch), SLICE):
                self.state.fold(batch[start : start + SLICE])
                self._note_progress(last)
                await asyncio.sleep(0)

    def _note_progress(self, last: int) -> None:
        self.ready = self.ready or self.state.seq >= last
        self._on_change()
