"""``cockpit notes``: what sessions taught, kept or forgotten by the user."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click
from msgspec import to_builtins

from cockpit.cli_options import AS_JSON, TOKEN, examples
from cockpit.commands.caller_rights import find_user
from cockpit.commands.open_project import find_project, open_store, read_store
from cockpit.commands.terminal import say, show, show_json, show_list
from cockpit.store.notes import notes as stored
from cockpit.store.notes.notes import Note

if TYPE_CHECKING:
    from cockpit.store.db.transaction import Tx

_WIDTH = 90


@click.group(
    short_help="Keep and forget what sessions taught.",
    epilog=examples("cockpit notes list", "cockpit notes keep n-ab12cd34"),
)
def notes() -> None:
    """Keep and forget what sessions taught.

    When a session ends, cockpit proposes notes: decisions, pitfalls, commands that work, open questions.
    Later sessions find those that you keep. Specified in docs/reference/notes.md.
    """


@notes.command("list", epilog=examples("cockpit notes list", "cockpit notes list --all --json"))
@click.option("--all", "with_forgotten", is_flag=True, help="List those that were forgotten too.")
@AS_JSON
def list_notes(with_forgotten: bool, as_json: bool) -> None:
    """List notes, proposed ones first."""
    statuses = ("proposed", "kept", *(("forgotten",) if with_forgotten else ()))
    rows: list[Note] = read_store(lambda connection: stored.select(connection, statuses), empty=[])
    show_list(
        as_json,
        [to_builtins(note) for note in rows],
        ("NOTE", "KIND", "STATUS", "SEEN", "TEXT"),
        [
            (note.note_id, note.kind, note.status, str(note.seen), _first_line(note.text))
            for note in rows
        ],
        "No notes yet. cockpit proposes them when sessions end; `cockpit notes add` writes one.",
    )


def _first_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 1]}…"


@notes.command("show", epilog=examples("cockpit notes show n-ab12cd34"))
@click.argument("note")
@AS_JSON
def show_note(note: str, as_json: bool) -> None:
    """Show a note and where it comes from."""
    row: Note = read_store(lambda connection: stored.load(connection, note))
    if as_json:
        show_json(to_builtins(row))
        return
    show(row.text)
    show(f"\n{row.kind} · {row.status} · taught {row.seen}×, contradicted {row.contradicted}×")
    show(f"from: {row.source}" + (f", session {row.session_id}" if row.session_id else ""))
    if row.reason:
        show(f"why it was forgotten: {row.reason}")


def _write(token: str, activity: str, step: Callable[[Tx, str], Note], as_json: bool) -> None:
    def decide(tx: Tx) -> Note:
        from cockpit.access.principals import journal_actor

        caller = find_user(tx, token, activity)
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
@TOKEN
@AS_JSON
def add_note(text: str, kind: str, token: str, as_json: bool) -> None:
    """Write a note of your own."""
    _write(token, "writing a note", lambda tx, by: stored.write(tx, kind, text, by=by), as_json)


@notes.command("keep", epilog=examples("cockpit notes keep n-ab12cd34"))
@click.argument("note")
@TOKEN
@AS_JSON
def keep_note(note: str, token: str, as_json: bool) -> None:
    """Keep a proposed note, or a forgotten one."""
    _write(token, "keeping a note", lambda tx, by: stored.keep(tx, note, by=by), as_json)


@notes.command(
    "edit", epilog=examples("cockpit notes edit n-ab12cd34 'Run `make test`, not pytest'")
)
@click.argument("note")
@click.argument("text")
@TOKEN
@AS_JSON
def edit_note(note: str, text: str, token: str, as_json: bool) -> None:
    """Change the text of a note, and keep it."""
    _write(token, "editing a note", lambda tx, by: stored.edit(tx, note, text, by=by), as_json)


@notes.command(
    "forget", epilog=examples("cockpit notes forget n-ab12cd34 --reason 'moved to make'")
)
@click.argument("note")
@click.option("--reason", default="", metavar="TEXT", help="Name why, for those who read it later.")
@TOKEN
@AS_JSON
def forget_note(note: str, reason: str, token: str, as_json: bool) -> None:
    """Forget a note; `keep` takes it back."""
    _write(
        token, "forgetting a note", lambda tx, by: stored.forget(tx, note, reason, by=by), as_json
    )


@notes.command("merge", epilog=examples("cockpit notes merge n-ab12cd34 n-ef56ab78"))
@click.argument("note")
@click.argument("into")
@TOKEN
@AS_JSON
def merge_notes(note: str, into: str, token: str, as_json: bool) -> None:
    """Merge a note into another of its kind.

    INTO is kept with its own text, and counts the sessions of both. NOTE is forgotten.
    """
    _write(token, "merging notes", lambda tx, by: stored.merge(tx, note, into, by=by), as_json)
