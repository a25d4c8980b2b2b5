"""Details of notes."""

from __future__ import annotations

from cockpit.store.journal.details.detail import Detail


class NoteChanged(Detail, frozen=True, kw_only=True):
    """A note was proposed, kept, edited, seen again, contradicted, merged or forgotten."""

    note_id: str
    """The note."""
    change: str
    """``proposed`` (by a session's end; it is not memory until the user keeps it), ``kept``, ``edited``,
    ``seen_again`` (a later session taught the same), ``contradicted`` (one showed the opposite), ``merged``
    (into another of its kind) or ``forgotten``."""
    kind: str
    """``decision``, ``pitfall``, ``command`` or ``question``."""
    text: str
    """The text of the note from now on."""
    source: str = ""
    """Of one that was proposed: its source, in words."""
    reason: str = ""
    """Why it was contradicted or forgotten, in words."""
    into: str = ""
    """The note that one that was merged stays in."""
