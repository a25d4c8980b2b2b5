"""The events of a session, as a program reads them. Specified in ``docs/reference/library.md``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from cockpit.loop.views.story import Storyteller
from cockpit.store.journal.journal import Row


class LoopEvent(Struct, frozen=True):
    """One row of the journal, and what it adds to the session's story."""

    seq: int
    """Its number in the journal; rises within a session."""
    at: str
    """When it was written: ISO 8601, UTC."""
    kind: str
    """The event type, such as ``wave.started``; ``docs/reference/journal.md`` lists all."""
    actor: str
    """Who caused it: ``person``, ``agent``, ``engine``, ``program``, ``policy:NAME``."""
    session_id: str
    wave_id: str
    detail: Mapping[str, Any]
    """The fields of this event type. What an agent or a file said in it is untrusted text."""
    text: str
    """What ``cockpit run`` prints for it; empty for most. Not cleaned for a terminal."""


def read_event(row: Row, teller: Storyteller) -> LoopEvent:
    """Return the event of a row; ``teller`` has told the rows of the session before it."""
    return LoopEvent(
        row.seq,
        row.at,
        row.action,
        row.actor,
        row.session_id,
        row.wave_id,
        row.body()["detail"],
        teller.tell(row),
    )
