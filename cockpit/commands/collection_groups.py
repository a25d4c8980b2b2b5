"""The command groups of collections: list, show, and a command for each verb, made from the description.

``from cockpit.commands.collection_groups import guards`` makes the group of that name; a group whose further
commands need options of their own is made where those are. Specified in ``docs/reference/collections.md``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from cockpit.cli_options import examples
from cockpit.collections.collection import LIMIT, Collection, Doing, Field, Listed, Part, Verb, View
from cockpit.collections.registry import NAMES, load_collection
from cockpit.commands.caller_rights import find_caller
from cockpit.commands.collection import CollectionGroup, limit_option
from cockpit.commands.confirm import YES, confirm
from cockpit.commands.open_project import (
    find_project,
    load_project_settings,
    open_store,
    read_store,
    require_records,
)
from cockpit.commands.terminal import say, show
from cockpit.core.clock import SystemClock
from cockpit.core.project_paths import user_folder

T = TypeVar("T")
REASON = click.option("--reason", "text", default="", metavar="TEXT", help="Record this reason.")


def __getattr__(name: str) -> click.Group:
    """Return the group of a collection, by the name of its command with ``_``."""
    command = name.replace("_", "-")
    if command not in NAMES:
        raise AttributeError(name)
    return make_group(load_collection(command))


def make_group(
    described: Collection[Any],
    *,
    before: Callable[[], object] = lambda: None,
    filters: Sequence[Callable[[Any], Any]] = (),
    details: Sequence[Callable[[Any], Any]] = (),
    find: Callable[[str], Any] | None = None,
    describe: Callable[..., str] | None = None,
    document: Callable[..., Any] | None = None,
    **own: Any,
) -> CollectionGroup[Any]:
    """Return the command group of a collection.

    ``before`` refuses who may not even read. ``filters`` are further options of the list, ``details``
    of a row that is shown, whose values ``describe`` and ``document`` get. ``find`` finds more by name than
    the collection does. ``own`` is what else the command does in its own way, as :class:`CollectionGroup`
    names it.
    """
    where = [each for each in described.filters if each.of_row]

    def read(**filters: Any) -> Listed[Any]:
        before()
        return read_view(described, lambda view: described.list_rows(view, **filters))

    def find_row(name: str, **given: Any) -> Any:
        before()
        if find is not None:
            return find(name)
        values = {each.name: given[each.name] for each in where}
        return read_view(described, lambda view: described.find_row(view, name, **values))

    same = {
        "columns": described.cells_of,
        "read": read,
        "none": described.none,
        "body": described.body,
        **own,
    }
    group: CollectionGroup[Any] = CollectionGroup(
        described.command.rpartition(" ")[2],
        short_help=described.summary,
        help=described.help,
        examples=described.examples,
        row=described.row,
        describe=describe or (lambda row, **_: format_parts(described.describe(row))),
        document=document or (lambda row, **_: described.show_row(row)),
        details=[*map(_option, where), *details],
        filters=[*map(_option, described.filters), *filters],
        find=find_row,
        **same,
    )
    for verb in described.verbs:
        if verb.has_command:
            _add_verb(group, described, verb)
    return group


def read_view(described: Collection[Any], read: Callable[[View], T]) -> T:
    """Read a project as its rows need it. Raises ``NotFound`` where they need records and there are none."""
    if described.source == "files":
        return read(_view(None))
    if described.source == "records":
        require_records()
    elif not find_project().database.exists():
        return read(_view(None))
    return read_store(lambda connection: read(_view(connection)))


def format_parts(parts: Sequence[Part]) -> str:
    """Return what is said of a row as text; text of others stands behind a bar on every line."""
    blocks = []
    for part in parts:
        fields = [(name, value) for name, value in part.fields if value]
        if fields and part.heading:
            blocks.append(
                "\n".join([part.heading, *(f"  {lead}  {text}" for lead, text in fields)])
            )
        elif fields:
            width = max(len(name) for name, _ in fields) + 2
            blocks.append("\n".join(f"{name:<{width}}{value}" for name, value in fields))
        if part.text.strip() and part.heading:
            lines = part.text.rstrip("\n").splitlines()
            blocks.append("\n".join([f"── {part.heading}", *(f"│ {line}" for line in lines)]))
        elif part.text:
            blocks.append(part.text)
    return "\n\n".join(blocks)


def _view(connection: Any) -> View:
    place = find_project()
    user_dir = user_folder(os.environ)
    return View(
        place, connection, SystemClock(), lambda: load_project_settings(place).runtime, user_dir
    )


def write_as_caller(step: Callable[[Doing], T], text: str = "") -> T:
    """Write in one transaction of the project's store, as the holder of the token, or the user."""
    with open_store(find_project()) as store:
        return store.write_now(
            lambda tx: step(Doing(tx, _view(tx.connection), find_caller(tx), text))
        )


def do_verb(
    described: Collection[Any], verb: Verb[Any], name: str, text: str = "", *, yes: bool = False
) -> None:
    """Carry out a verb on the row of that name, and print what was done.

    One of high risk is asked for first, below the whole row. Raises what the verb and the search raise.
    """
    row = read_view(described, lambda view: described.find_row(view, name))
    if verb.risk == "high":
        write_as_caller(lambda doing: verb.require(doing.caller))
        show(format_parts(described.describe(row)))
        confirm(f"{verb.title}? It {verb.question}.", yes=yes, undone="nothing was done")
    say(write_as_caller(lambda doing: verb.carry_out(doing, row), text))


def _add_verb(group: CollectionGroup[Any], described: Collection[Any], verb: Verb[Any]) -> None:
    def run(name: str, text: str = "", yes: bool = False) -> None:
        do_verb(described, verb, name, text, yes=yes)

    argument = verb.needs.name if verb.needs is not None else ""
    sample = f"cockpit {described.command} {verb.name} {described.sample}"
    command = click.Command(
        verb.name,
        callback=run,
        help=f"{verb.title}.\n\n{' '.join(verb.help.split())}",
        epilog=examples(f"{sample} {verb.needs.sample}" if verb.needs else sample),
    )
    command.params.append(click.Argument(["name"], metavar=described.row))
    if argument:
        command.params.append(click.Argument(["text"], metavar=argument))
    for option in ((YES,) if verb.risk == "high" else ()) + ((REASON,) if verb.has_reason else ()):
        option(command)
    group.add_command(command)


def _option(field: Field) -> Callable[[Any], Any]:
    names = [field.flag or f"--{field.name.replace('_', '-')}", field.name]
    if field.kind == "flag":
        return click.option(*names, is_flag=True, help=field.help)
    if field.name == LIMIT.name:
        return limit_option(field.default, field.most)
    kind: click.ParamType[Any] | None = None
    if field.kind == "number":
        kind = click.IntRange(field.least, field.most)
    elif field.choices:
        kind = click.Choice(field.choices, case_sensitive=False)
    return click.option(
        *names,
        type=kind,
        default=field.default,
        show_default=bool(field.default),
        metavar=field.metavar,
        help=field.help,
    )
