"""What the screen asks of notes: lists, and the user's decisions on exactly what was shown.

See ``docs/reference/notes.md``, on the screen.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from msgspec import Struct

from cockpit.access.principals import journal_actor
from cockpit.core.errors import Stale
from cockpit.loop.decisions.decide_proposal import find_decider
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.notes import notes
from cockpit.store.notes.notes import Note

MOST_NOTES = 2_000
"""Notes of one status that are read, those that changed last."""


class NoteListing(Struct, frozen=True):
    """Notes, and how many of them there are."""

    notes: tuple[Note, ...]
    proposed: int
    kept: int
    forgotten: int


class NoteService(Struct, frozen=True):
    """The notes of an open project. The methods raise ``CockpitError`` with text for the user."""

    store: Store
    settings: RuntimeSettings

    async def read_notes(self, *, with_forgotten: bool = False) -> NoteListing:
        """Return proposed notes, then kept ones, then those that were forgotten."""
        statuses = ("proposed", "kept", *(("forgotten",) if with_forgotten else ()))

        def read(connection: sqlite3.Connection) -> NoteListing:
            counts = notes.count(connection)
            rows = notes.select(connection, statuses, MOST_NOTES)
            number = (counts.get(status, 0) for status in ("proposed", "kept", "forgotten"))
            return NoteListing(tuple(rows), *number)

        return await self.store.read(read)

    async def keep(self, note: Note) -> None:
        """Keep a note."""
        await self._decide(note, "keep", lambda tx, by: notes.keep(tx, note.note_id, by=by))

    async def edit(self, note: Note, text: str) -> None:
        """Change the text of a note, and keep it."""
        await self._decide(note, "edit", lambda tx, by: notes.edit(tx, note.note_id, text, by=by))

    async def forget(self, note: Note) -> None:
        """Take a note out of memory."""
        await self._decide(note, "forget", lambda tx, by: notes.forget(tx, note.note_id, by=by))

    async def merge(self, note: Note, into: Note) -> None:
        """Merge a note into another."""
        await self._decide(
            note, "merge", lambda tx, by: notes.merge(tx, note.note_id, into.note_id, by=by)
        )

    async def write(self, kind: str, text: str) -> None:
        """Write a note of the user's own."""
        await self._decide(None, "write", lambda tx, by: notes.write(tx, kind, text, by=by))

    async def _decide(
        self, shown: Note | None, verb: str, step: Callable[[Tx, str], object]
    ) -> None:
        def decide(tx: Tx) -> None:
            caller = find_decider(tx, self.settings)
            caller.require("work.write", f"{verb} a note")
            now = shown and notes.load(tx.connection, shown.note_id)
            if shown is not None and now is not None and now.text != shown.text:
                raise Stale(f"{shown.note_id} says something else by now. Read it, then decide.")
            step(tx, journal_actor(caller))

        await self.store.write(decide)
