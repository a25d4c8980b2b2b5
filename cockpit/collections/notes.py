"""Notes: what sessions taught, kept, edited, merged and forgotten by the user.

Specified in ``docs/reference/notes.md``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from cockpit.access.principals import journal_actor
from cockpit.access.token_scopes import WORK_READ, WORK_WRITE
from cockpit.collections.collection import (
    Collection,
    Doing,
    Field,
    NeededText,
    Part,
    Verb,
    View,
    open_records,
)
from cockpit.core.errors import Stale
from cockpit.core.text import pluralize
from cockpit.store.notes import notes
from cockpit.store.notes.notes import Note

MOST = 2_000
"""Notes of one status that are read, those that changed last."""
_WIDTH = 90
_EXPLAINED = {
    "decision": "what you decided",
    "pitfall": "what went wrong, and why",
    "command": "a command that works",
    "question": "a question that is open",
}


def _read(view: View, with_forgotten: bool) -> Sequence[Note]:
    if view.connection is None:
        return ()
    statuses = ("proposed", "kept", *(("forgotten",) if with_forgotten else ()))
    return notes.select(view.connection, statuses, MOST)


def write_note(doing: Doing, kind: str) -> Note:
    """Write a note of the user's own, with the text that was asked for. Raises ``NotAllowed``."""
    KEEP.require(doing.caller)
    return notes.write(doing.tx, kind, doing.text, by=journal_actor(doing.caller))


def _deciding(step: Callable[[Doing, str, str], Note]) -> Callable[[Doing, Note], str]:
    """Return a verb that decides a note as it was shown."""

    def act(doing: Doing, shown: Note) -> str:
        if notes.load(doing.connection, shown.note_id).text != shown.text:
            raise Stale(f"{shown.note_id} says something else by now. Read it, then decide.")
        note = step(doing, shown.note_id, journal_actor(doing.caller))
        return describe_note(note)

    return act


def describe_note(note: Note) -> str:
    """Return what became of a note, in one line."""
    return f"{note.status}  {note.note_id}  {_first_line(note.text)}"


def _keep(doing: Doing, note_id: str, by: str) -> Note:
    if doing.text:
        return notes.edit(doing.tx, note_id, doing.text, by=by)
    return notes.keep(doing.tx, note_id, by=by)


def _first_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 1]}…"


def _count_teaching(row: Note) -> str:
    return f"taught by {pluralize(row.seen, 'session')}" if row.session_id else "written by you"


def _list_others(row: Note, rows: Sequence[Note]) -> Sequence[tuple[str, str, str]]:
    return [
        (note.note_id, " ".join(note.text.split()), note.note_id)
        for note in rows
        if note.kind == row.kind and note.status != "forgotten" and note != row
    ]


def _detail(row: Note) -> Sequence[Part]:
    facts = [
        ("note", row.note_id),
        ("kind", f"{row.kind}: {_EXPLAINED.get(row.kind, '')}"),
        ("state", row.status),
        ("from", row.source),
        ("session", row.session_id),
        ("task", " · ".join(filter(None, (row.task_id, row.task_type)))),
        ("taught", _count_teaching(row)),
        ("against", f"{row.contradicted} showed the opposite" if row.contradicted else ""),
        ("why it was forgotten", row.reason if row.status == "forgotten" else ""),
        ("first", row.created_at[:16].replace("T", " ")),
        ("changed", row.updated_at[:16].replace("T", " ")),
    ]
    return Part("the note", text=row.text), Part(fields=facts)


def _count(rows: Sequence[Note]) -> str:
    counts = Counter(row.status for row in rows)
    words = [
        f"{counts[each]:,} {each}" for each in ("proposed", "kept", "forgotten") if counts[each]
    ]
    return ", ".join(words)


KEEP = Verb[Note](
    "keep",
    "Keep a note",
    _deciding(_keep),
    key="s",
    activity="deciding a note",
    takes=lambda row: row.status != "kept",
    who="present",
    scope=WORK_WRITE,
    label=lambda row: "keep again" if row.status == "forgotten" else "keep",
    is_enter=True,
    has_command=False,
)

MERGE = Verb[Note](
    "merge",
    "Merge a note into another",
    _deciding(lambda doing, note_id, by: notes.merge(doing.tx, note_id, doing.text, by=by)),
    key="m",
    activity="deciding a note",
    takes=lambda row: row.status != "forgotten",
    who="present",
    scope=WORK_WRITE,
    needs=NeededText(
        "INTO",
        "Choose what stays, in place of",
        "n-ef56ab78",
        choices=_list_others,
    ),
    has_command=False,  # an option of keep
)

COLLECTION = Collection[Note](
    name="notes",
    command="notes",
    title="Notes",
    summary="Keep and forget what sessions taught.",
    help="""Keep and forget what sessions taught; proposed notes are listed first.

    When a session ends, cockpit proposes notes: decisions, pitfalls, commands that work, open questions.
    Later sessions find those that you keep. Specified in docs/reference/notes.md.
    """,
    examples=("cockpit notes", "cockpit notes n-ab12cd34", "cockpit notes keep n-ab12cd34"),
    row="NOTE",
    sample="n-ab12cd34",
    columns={
        "NOTE": lambda note: note.note_id,
        "KIND": lambda note: note.kind,
        "STATUS": lambda note: note.status,
        "SEEN": lambda note: str(note.seen),
        "TEXT": lambda note: _first_line(note.text),
    },
    read=_read,
    find=lambda view, name: notes.load(open_records(view), name),
    none="No notes yet. cockpit proposes them when sessions end; `cockpit notes add` writes one.",
    detail=_detail,
    filters=(
        Field(
            "with_forgotten",
            "List those that were forgotten too.",
            "--all",
            "flag",
            default=False,
            key="h",
        ),
    ),
    scope=WORK_READ,
    key="alt+m",
    synonyms="memory remember",
    line=lambda row: " ".join(row.text.split()),
    about=lambda row: " · ".join(
        (row.kind, f"session {row.session_id}" if row.session_id else "yours", _count_teaching(row))
    ),
    headline=_count,
    words=lambda row: (
        f"{row.text}\n{row.source}\n{row.session_id}\n{row.task_id or ''}\n{row.task_type}"
    ),
    verbs=(
        KEEP,
        Verb(
            "edit",
            "Edit a note, and keep it",
            _deciding(_keep),
            key="e",
            activity="deciding a note",
            takes=lambda row: row.status != "forgotten",
            who="present",
            scope=WORK_WRITE,
            is_enter=True,
            needs=NeededText("TEXT", "Saving keeps it.", "TEXT", value=lambda row: row.text),
            has_command=False,
        ),
        MERGE,
        Verb(
            "forget",
            "Forget a note",
            _deciding(
                lambda doing, note_id, by: notes.forget(doing.tx, note_id, doing.text, by=by)
            ),
            key="x",
            activity="deciding a note",
            takes=lambda row: row.status != "forgotten",
            question="forgets it: later sessions do not find it",
            who="present",
            scope=WORK_WRITE,
            has_reason=True,
            help="`cockpit notes keep NOTE` takes it back.",
        ),
    ),
)
