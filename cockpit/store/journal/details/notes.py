"""Details of notes: proposed, kept, edited, seen again, contradicted, forgotten and merged."""

from __future__ import annotations

from cockpit.store.journal.details.detail import Detail


class OfNote(Detail, frozen=True, kw_only=True):
    """Fields that all events of notes share."""

    note_id: str
    """The note."""
    kind: str
    """``decision``, ``pitfall``, ``command`` or ``question``."""
    text: str
    """The text of the note from now on."""


class NoteProposed(OfNote, frozen=True, kw_only=True):
    """A session's end proposed a note; it is not memory until the user keeps it."""

    subject: str
    """By which it is the same as another note of its kind."""
    source: str
    """The source of the note, in words."""


class NoteKept(OfNote, frozen=True, kw_only=True):
    """The user keeps a note, or wrote one: later sessions may find it."""


class NoteEdited(OfNote, frozen=True, kw_only=True):
    """The user changed the text of a note."""


class NoteSeenAgain(OfNote, frozen=True, kw_only=True):
    """A later session taught the same."""

    seen: int
    """How many sessions have taught it."""


class NoteContradicted(OfNote, frozen=True, kw_only=True):
    """A later session showed the opposite of a note."""

    contradicted: int
    """How often that has happened."""
    reason: str
    """The evidence against the note, in words."""


class NoteForgotten(OfNote, frozen=True, kw_only=True):
    """A note is not memory any more: by the user, or because it was contradicted or answered."""

    reason: str
    """Why."""


class NoteMerged(OfNote, frozen=True, kw_only=True):
    """The user merged a note into another of its kind, which counts its sessions from now on."""

    into: str
    """The note that stays."""
    seen: int
    """How many sessions have taught that note, with this one's."""
