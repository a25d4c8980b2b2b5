"""``cockpit notes``: the group of the collection, and what takes a text."""

from __future__ import annotations

import click
from msgspec import to_builtins

from cockpit.cli_options import AS_JSON, examples
from cockpit.collections.notes import COLLECTION, KEEP, MERGE, describe_note, write_note
from cockpit.commands.collection_groups import do_verb, make_group, write_as_caller
from cockpit.commands.terminal import say, show_json
from cockpit.store.notes.notes import KINDS

notes = make_group(COLLECTION)


@notes.command("add", epilog=examples("cockpit notes add 'Rates are in cents, never in floats'"))
@click.argument("text")
@click.option(
    "--kind",
    type=click.Choice(KINDS),
    default="decision",
    help="Name its kind. Default: decision.",
)
@AS_JSON
def add_note(text: str, kind: str, as_json: bool) -> None:
    """Write a note of your own."""
    note = write_as_caller(lambda doing: write_note(doing, kind), text)
    if as_json:
        show_json(to_builtins(note))
    else:
        say(describe_note(note))


@notes.command(
    "keep",
    epilog=examples(
        "cockpit notes keep n-ab12cd34",
        "cockpit notes keep n-ab12cd34 'Run make test, not pytest'",
        "cockpit notes keep n-ab12cd34 --with n-ef56ab78",
    ),
)
@click.argument("note")
@click.argument("text", default="")
@click.option("--with", "other", metavar="NOTE", help="Keep it in place of this one too.")
def keep_note(note: str, text: str, other: str | None) -> None:
    """Keep a note, proposed or forgotten.

    With TEXT it says that from now on. With another note, of the same kind, it counts the sessions of both,
    and the other is forgotten.
    """
    if other is not None:
        if text:
            raise click.UsageError("--with keeps the note as it is. Leave out TEXT.")
        do_verb(COLLECTION, MERGE, other, note)
        return
    do_verb(COLLECTION, KEEP, note, text)
