"""The table of notes: one row for each lesson, decided by the user alone.

``proposed`` → ``kept`` | ``forgotten``; ``kept`` → ``forgotten``; ``forgotten`` → ``kept``. Later sessions
find kept notes alone. Specified in ``docs/reference/notes.md``.
"""

from __future__ import annotations

import sqlite3
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from cockpit.core.errors import CockpitError, IllegalTransition, NotFound
from cockpit.core.secrets import mask
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.notes import NoteChanged

Kind = Literal["decision", "pitfall", "command", "question"]
KINDS: tuple[Kind, ...] = ("decision", "pitfall", "command", "question")
LONGEST = 2_000
"""Characters of a note; a longer one belongs into the project's documents."""
MOST_CONTRADICTIONS = 2
"""A kept note is forgotten when so many sessions have shown the opposite."""


class NoteInvalid(CockpitError):
    """A note is empty, too long, or of no kind that exists."""

    code = "note_invalid"


class NoteDraft(Struct, frozen=True):
    """A lesson of one session, before it is compared with the notes that exist."""

    kind: Kind
    subject: str
    """By which it is the same as another of its kind."""
    text: str
    source: str
    """What it was distilled from, in words."""


class Note(Struct, frozen=True):
    """One row of ``notes``."""

    note_id: str
    kind: str
    subject: str
    text: str
    source: str
    task_type: str
    task_id: str | None
    session_id: str
    """The session that taught it first; empty for a note that the user wrote."""
    status: str
    """``proposed``, ``kept`` or ``forgotten``."""
    seen: int
    """Sessions that taught it."""
    contradicted: int
    """Sessions that showed the opposite since it was last taught."""
    reason: str
    """Why it was forgotten."""
    created_at: str
    updated_at: str

    @property
    def ref(self) -> str:
        """Its name as a scope item and in the knowledge index."""
        return f"note:{self.note_id}"


_COLUMNS = (
    "note_id, kind, subject, text, source, task_type, task_id, coalesce(session_id, ''), status, seen,"
    " contradicted, reason, created_at, updated_at"
)
_SELECT = f"SELECT {_COLUMNS} FROM notes"  # noqa: S608 - fixed columns


def propose(
    tx: Tx, draft: NoteDraft, *, session_id: str, task_type: str = "", task_id: str | None = None
) -> Note | None:
    """Store a lesson as a proposed note, or count it where a note says the same already.

    None where the session has taught that note before, so a session that is resumed counts once, and where
    the user has forgotten this very lesson: it is not proposed twice.
    """
    text, subject = mask(draft.text)[:LONGEST], mask(draft.subject)[:LONGEST]
    row = tx.execute(
        f"{_SELECT} WHERE kind=? AND subject=? ORDER BY status='forgotten', rowid DESC LIMIT 1",
        (draft.kind, subject),
    ).fetchone()
    if row is not None:
        note = _read(row)
        forgotten_by_user = note.status == "forgotten" and not note.contradicted
        if note.session_id == session_id or forgotten_by_user:
            return None
        if note.status != "forgotten":
            return _see_again(tx, note, session_id)
    note_id, now = tx.ids.new("n"), tx.now()
    tx.execute(
        "INSERT INTO notes(note_id, kind, subject, text, source, task_type, task_id, session_id, status,"
        " created_at, updated_at) VALUES (?,?,?,?,?,?,?,?,'proposed',?,?)",
        (
            *(note_id, draft.kind, subject, text, mask(draft.source)[:LONGEST]),
            *(task_type, task_id, session_id, now, now),
        ),
    )
    tx.journal(
        NoteChanged(
            note_id=note_id,
            change="proposed",
            kind=draft.kind,
            text=text,
            source=mask(draft.source),
        ),
        actor="engine",
        session_id=session_id,
    )
    return load(tx.connection, note_id)


def _see_again(tx: Tx, note: Note, session_id: str) -> Note:
    tx.execute(
        "UPDATE notes SET seen=seen+1, contradicted=0, updated_at=? WHERE note_id=?",
        (tx.now(), note.note_id),
    )
    _journal(tx, note, "seen_again", "engine", session_id)
    return load(tx.connection, note.note_id)


def write(tx: Tx, kind: str, text: str, *, by: str = "person") -> Note:
    """Store a note of the user's own; it is kept at once. Raises :class:`NoteInvalid`."""
    if kind not in KINDS:
        raise NoteInvalid(f"There is no kind of note {kind!r}; there are {', '.join(KINDS)}.")
    text = _checked(text)
    subject = _subject_of(kind, text)
    same = tx.execute(
        "SELECT note_id FROM notes WHERE kind=? AND subject=? AND status<>'forgotten'",
        (kind, subject),
    ).fetchone()
    if same is not None:
        raise NoteInvalid(
            f"Note {same[0]} says the same already; nothing was stored. Keep or edit that one."
        )
    note_id, now = tx.ids.new("n"), tx.now()
    tx.execute(
        "INSERT INTO notes(note_id, kind, subject, text, source, status, created_at, updated_at)"
        " VALUES (?,?,?,?,'written by the user','kept',?,?)",
        (note_id, kind, subject, text, now, now),
    )
    note = load(tx.connection, note_id)
    _journal(tx, note, "kept", by)
    return note


def keep(tx: Tx, note_id: str, *, by: str = "person") -> Note:
    """Keep a proposed note, or take one back that was forgotten. Raises ``NotFound``."""
    note = load(tx.connection, note_id)
    if note.status == "kept":
        return note
    same = tx.execute(
        "SELECT note_id FROM notes WHERE kind=? AND subject=? AND status<>'forgotten' AND note_id<>?",
        (note.kind, note.subject, note_id),
    ).fetchone()
    if same is not None:
        raise IllegalTransition(f"{same[0]} says the same already. Keep or edit that one.")
    tx.execute(
        "UPDATE notes SET status='kept', contradicted=0, reason='', updated_at=? WHERE note_id=?",
        (tx.now(), note_id),
    )
    _journal(tx, note, "kept", by)
    return load(tx.connection, note_id)


def edit(tx: Tx, note_id: str, text: str, *, by: str = "person") -> Note:
    """Change the text of a note; one that was proposed is kept by it.

    Raises ``NoteInvalid``, and ``NotFound``.
    """
    note, text = load(tx.connection, note_id), _checked(text)
    if note.status == "forgotten":
        raise IllegalTransition(f"{note_id} was forgotten. Keep it first.")
    tx.execute("UPDATE notes SET text=?, updated_at=? WHERE note_id=?", (text, tx.now(), note_id))
    _journal(tx, replace(note, text=text), "edited", by)
    return keep(tx, note_id, by=by)


def forget(tx: Tx, note_id: str, reason: str = "", *, by: str = "person") -> Note:
    """Take a note out of memory; its row stays, and :func:`keep` takes it back. Raises ``NotFound``."""
    note = load(tx.connection, note_id)
    if note.status == "forgotten":
        return note
    reason = mask(reason)[:LONGEST]
    tx.execute(
        "UPDATE notes SET status='forgotten', reason=?, updated_at=? WHERE note_id=?",
        (reason, tx.now(), note_id),
    )
    _journal(tx, note, "forgotten", by, reason=reason)
    return load(tx.connection, note_id)


def merge(tx: Tx, note_id: str, into_id: str, *, by: str = "person") -> Note:
    """Merge a note into another of its kind, which is kept with its own text and counts the sessions of both.

    The merged note is forgotten. Returns the note that stays. Raises ``NoteInvalid`` for notes that cannot be
    merged, and ``NotFound``.
    """
    note, into = load(tx.connection, note_id), load(tx.connection, into_id)
    if note_id == into_id:
        raise NoteInvalid("A note cannot be merged into itself. Name two notes.")
    if note.kind != into.kind:
        raise NoteInvalid(
            f"{note_id} is a {note.kind} and {into_id} a {into.kind}; only notes of one kind are merged."
        )
    for each in (note, into):
        if each.status == "forgotten":
            raise IllegalTransition(
                f"{each.note_id} was forgotten; nothing was merged. Keep it first: `cockpit notes"
                f" keep {each.note_id}`."
            )
    keep(tx, into_id, by=by)
    seen = into.seen + note.seen
    tx.execute("UPDATE notes SET seen=?, updated_at=? WHERE note_id=?", (seen, tx.now(), into_id))
    _journal(tx, note, "merged", by, into=into_id)
    forget(tx, note_id, f"merged into {into_id}", by=by)
    return load(tx.connection, into_id)


def count(connection: sqlite3.Connection) -> dict[str, int]:
    """Count notes by status."""
    rows = connection.execute("SELECT status, count(*) FROM notes GROUP BY status")
    return {str(status): int(number) for status, number in rows}


def contradict(tx: Tx, note: Note, reason: str, *, session_id: str) -> Note:
    """Count that a session showed the opposite of a note; the second time it is forgotten.

    A note that the user has not kept is forgotten the first time.
    """
    reason = mask(reason)[:LONGEST]
    tx.execute(
        "UPDATE notes SET contradicted=contradicted+1, updated_at=? WHERE note_id=?",
        (tx.now(), note.note_id),
    )
    count = note.contradicted + 1
    _journal(tx, note, "contradicted", "engine", session_id, reason=reason)
    if note.status == "proposed" or count >= MOST_CONTRADICTIONS:
        return forget(tx, note.note_id, reason, by="engine")
    return load(tx.connection, note.note_id)


def load(connection: sqlite3.Connection, note_id: str) -> Note:
    """Read one note. Raises :class:`~cockpit.core.errors.NotFound`."""
    row = connection.execute(f"{_SELECT} WHERE note_id=?", (note_id,)).fetchone()
    if row is None:
        raise NotFound(f"There is no note {note_id}. `cockpit notes --all` lists all notes.")
    return _read(row)


def select(
    connection: sqlite3.Connection,
    statuses: tuple[str, ...] = ("proposed", "kept"),
    limit: int = 500,
) -> list[Note]:
    """Read notes of these statuses, those that changed last first."""
    notes: list[Note] = []
    for status in statuses:
        rows = connection.execute(
            f"{_SELECT} WHERE status=? ORDER BY updated_at DESC, note_id LIMIT ?", (status, limit)
        )
        notes += map(_read, rows)
    return notes


def select_open_questions(
    connection: sqlite3.Connection, session_id: str, task_id: str | None
) -> list[Note]:
    """Read the questions of a session, and of its task, that were not forgotten."""
    rows = connection.execute(
        f"{_SELECT} WHERE kind='question' AND status<>'forgotten' AND (session_id=? OR task_id=?)"
        " ORDER BY note_id",
        (session_id, task_id),
    )
    return [_read(row) for row in rows]


def select_by_subject(connection: sqlite3.Connection, kind: Kind, subject: str) -> Note | None:
    """Read the note of that kind and subject that was not forgotten, or None."""
    row = connection.execute(
        f"{_SELECT} WHERE kind=? AND subject=? AND status<>'forgotten'", (kind, subject)
    ).fetchone()
    return None if row is None else _read(row)


def _subject_of(kind: str, text: str) -> str:
    """Return what makes two notes of a kind the same lesson, as sessions' notes have it."""
    flat = " ".join(text.split())
    return flat if kind == "command" else flat.casefold().rstrip(".!")


def _checked(text: str) -> str:
    plain = "".join(letter for letter in text if letter.isprintable() or letter == "\n")
    text = mask(plain.strip())
    if not text:
        raise NoteInvalid("The note is empty; nothing was stored.")
    if len(text) > LONGEST:
        raise NoteInvalid(
            f"The note has {len(text):,} characters; {LONGEST:,} are the most. Nothing was stored."
        )
    return text


def _read(row: tuple[Any, ...]) -> Note:
    return Note(*row)


def _journal(
    tx: Tx,
    note: Note,
    change: str,
    by: str,
    session_id: str | None = None,
    *,
    reason: str = "",
    into: str = "",
) -> None:
    event = NoteChanged(
        note_id=note.note_id,
        change=change,
        kind=note.kind,
        text=note.text,
        reason=reason,
        into=into,
    )
    tx.journal(event, actor=by, session_id=note.session_id if session_id is None else session_id)
