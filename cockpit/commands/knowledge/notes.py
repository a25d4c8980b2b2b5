"""``cockpit notes``: what sessions taught, kept or forgotten by the user."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click
from msgspec import to_builtins

from cockpit.cli_options import AS_JSON, examples
from cockpit.commands.caller_rights import find_user
from cockpit.commands.collection import Collection
from cockpit.commands.open_project import find_project, open_store, read_store
from cockpit.commands.terminal import say, show_json
from cockpit.store.notes import notes as stored
from cockpit.store.notes.notes import Note

if TYPE_CHECKING:
    from cockpit.store.db.transaction import Tx

_WIDTH = 90


def _read(with_forgotten: bool) -> Sequence[Note]:
    statuses = ("proposed", "kept", *(("forgotten",) if with_forgotten else ()))
    return read_store(lambda connection: stored.select(connection, statuses), empty=[])


def _find(name: str) -> Note:
    return read_store(lambda connection: stored.load(connection, name))


def _describe(note: Note) -> str:
    session = f", session {note.session_id}" if note.session_id else ""
    reason = f"\nwhy it was forgotten: {note.reason}" if note.reason else ""
    return (
        f"{note.text}\n\n{note.kind} · {note.status} · taught {note.seen}×, contradicted"
        f" {note.contradicted}×\nfrom: {note.source}{session}{reason}"
    )


def _first_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 1]}…"


notes = Collection(
    "notes",
    short_help="Keep and forget what sessions taught.",
    help="""Keep and forget what sessions taught; proposed notes are listed first.

    When a session ends, cockpit proposes notes: decisions, pitfalls, commands that work, open questions.
    Later sessions find those that you keep. Specified in docs/reference/notes.md.
    """,
    examples=("cockpit notes", "cockpit notes n-ab12cd34", "cockpit notes keep n-ab12cd34"),
    row="NOTE",
    columns={
        "NOTE": lambda note: note.note_id,
        "KIND": lambda note: note.kind,
        "STATUS": lambda note: note.status,
        "SEEN": lambda note: str(note.seen),
        "TEXT": lambda note: _first_line(note.text),
    },
    read=_read,
    find=_find,
    describe=_describe,
    none="No notes yet. cockpit proposes them when sessions end; `cockpit notes add` writes one.",
    filters=[
        click.option(
            "--all", "with_forgotten", is_flag=True, help="List those that were forgotten too."
        )
    ],
)


def _write(activity: str, step: Callable[[Tx, str], Note], as_json: bool) -> None:
    def decide(tx: Tx) -> Note:
        from cockpit.access.principals import journal_actor

        caller = find_user(tx, activity)
        caller.require("work.write", "change notes")
        return step(tx, journal_actor(caller))

    with open_store(find_project()) as store:
        note = store.write_now(decide)
    if as_json:
        show_json(to_builtins(note))
    else:
        say(f"{note.status}  {note.note_id}  {_first_line(note.text)}")


@notes.command("add", epilog=examples("cockpit notes add 'Rates are in cents, never in floats'"))
@click.argument("text")
@click.option(
    "--kind",
    type=click.Choice(stored.KINDS),
    default="decision",
    help="Name its kind. Default: decision.",
)
@AS_JSON
def add_note(text: str, kind: str, as_json: bool) -> None:
    """Write a note of your own."""
    _write("writing a note", lambda tx, by: stored.write(tx, kind, text, by=by), as_json)


@notes.command("keep", epilog=examples("cockpit notes keep n-ab12cd34"))
@click.argument("note")
@AS_JSON
def keep_note(note: str, as_json: bool) -> None:
    """Keep a proposed note, or a forgotten one."""
    _write("keeping a note", lambda tx, by: stored.keep(tx, note, by=by), as_json)


@notes.command("edit", epilog=examples("cockpit notes edit n-ab12cd34 'Run make test, not pytest'"))
@click.argument("note")
@click.argument("text")
@AS_JSON
def edit_note(note: str, text: str, as_json: bool) -> None:
    """Change the text of a note, and keep it."""
    _write("editing a note", lambda tx, by: stored.edit(tx, note, text, by=by), as_json)


@notes.command(
    "forget", epilog=examples("cockpit notes forget n-ab12cd34 --reason 'moved to make'")
)
@click.argument("note")
@click.option("--reason", default="", metavar="TEXT", help="Name why, for those who read it later.")
@AS_JSON
def forget_note(note: str, reason: str, as_json: bool) -> None:
    """Forget a note; `keep` takes it back."""
    _write("forgetting a note", lambda tx, by: stored.forget(tx, note, reason, by=by), as_json)


@notes.command("merge", epilog=examples("cockpit notes merge n-ab12cd34 n-ef56ab78"))
@click.argument("note")
@click.argument("into")
@AS_JSON
def merge_notes(note: str, into: str, as_json: bool) -> None:
    """Merge a note into another of its kind.

    INTO is kept with its own text, and counts the sessions of both. NOTE is forgotten.
    """
    _write("merging notes", lambda tx, by: stored.merge(tx, note, into, by=by), as_json)
