"""How the screen is fed: the journal followed, folded in slices, nothing else read."""

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
"""Rows folded before the event loop has its turn: well under a millisecond."""

_AGAIN_S = 1.0


class Feed:
    """The journal's state so far. ``ready`` turns True once what was there at the start is folded;
    ``changed`` is called after every slice, ``lost`` when the journal cannot be read."""

    def __init__(
        self, store: Store, changed: Callable[[], None], lost: Callable[[str], None]
    ) -> None:
        self.state = State()
        self.ready = False
        self._store = store
        self._changed = changed
        self._lost = lost

    async def run(self) -> None:
        """Follow for ever; a journal that cannot be read is tried again."""
        while True:
            try:
                await self._follow()
            except (CockpitError, sqlite3.Error, OSError) as error:
                self._lost(f"The journal cannot be read: {error}. Trying again.")
                await self._store.clock.sleep(_AGAIN_S)

    async def _follow(self) -> None:
        last = await self._store.read(journal.last_seq)
        self._reached(last)
        async for batch in follow(self._store, after=self.state.seq):
            for start in range(0, len(batch), SLICE):
                self.state.fold(batch[start : start + SLICE])
                self._reached(last)
                await asyncio.sleep(0)

    def _reached(self, last: int) -> None:
        self.ready = self.ready or self.state.seq >= last
        self._changed()
