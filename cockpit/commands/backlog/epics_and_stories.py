"""``cockpit epics`` and ``cockpit stories``: two groups with the same four commands.

Specified in ``docs/reference/backlog.md`` and ``docs/reference/commands.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click
from msgspec import Struct

from cockpit.cli_options import AS_JSON, examples
from cockpit.commands.backlog.call_work_tools import (
    DESCRIPTION,
    FIELDS,
    LIMIT,
    OFFSET,
    PRIORITY,
    STANDING,
    STATUS,
    authorize_writer,
    name_more,
    read_text_argument,
    read_with_tool,
    write_store,
)
from cockpit.commands.collection import Collection, Columns, Listed
from cockpit.commands.open_project import WrongUse
from cockpit.commands.terminal import format_table, show, show_json

Option = Callable[[Any], Any]


class _Kind(Struct, frozen=True):
    """In what the commands for epics and for stories differ."""

    word: str
    plural: str
    article: str
    children: str
    """What adds up to one, in the plural."""
    child: str
    option: Option
    """The option of ``add`` and ``edit`` that only this kind has."""
    option_name: str
    filter: Option
    """The option of ``list`` that only this kind has."""
    list_tool: str
    show_priority: bool
    """Whether the table and the heading show a priority; otherwise the heading shows the epic."""
    key: str
    """An id, for examples."""
    own_option: str
    """The option that only this kind has, for examples."""


_EPIC = _Kind(
    word="epic",
    plural="epics",
    article="an",
    children="stories",
    child="story",
    option=PRIORITY,
    option_name="priority",
    filter=PRIORITY,
    list_tool="get_epics",
    show_priority=True,
    key="E-1",
    own_option="--priority P1",
)
_STORY = _Kind(
    word="story",
    plural="stories",
    article="a",
    children="tasks",
    child="task",
    option=click.option("--epic", "epic_id", metavar="ID", help="Put the story into this epic."),
    option_name="epic",
    filter=click.option("--epic", "epic_id", metavar="ID", help="List only stories of this epic."),
    list_tool="list_stories",
    show_priority=False,
    key="S-12",
    own_option="--epic E-1",
)


def _define_commands(kind: _Kind, short_help: str, help_text: str) -> Collection[Any]:
    """Return the group of ``kind``, with the commands ``add`` and ``edit``."""
    group = _define_collection(kind, short_help, help_text)
    _define_add(group, kind)
    _define_edit(group, kind)
    return group


def _define_add(group: click.Group, kind: _Kind) -> None:
    @group.command(
        help=f"Add {kind.article} {kind.word}.",
        epilog=examples(f'cockpit {kind.plural} add "Single sign-on" {kind.own_option}'),
    )
    @click.argument("title", nargs=-1, required=True)
    @kind.option
    @DESCRIPTION
    @AS_JSON
    def add(title: tuple[str, ...], description: str | None, as_json: bool, **own: Any) -> None:
        own = {name: value for name, value in own.items() if value is not None}

        def step(tx: Any) -> dict[str, Any]:
            from cockpit.backlog import service

            create: Any = service.create_epic if kind is _EPIC else service.create_story
            by = authorize_writer(tx, f"write {kind.plural}")
            text = read_text_argument(description) or ""
            return _render(kind, create(tx, " ".join(title), description=text, by=by, **own))

        _show_change(write_store(step), as_json)


def _define_collection(kind: _Kind, short_help: str, help_text: str) -> Collection[Any]:
    name = kind.word.upper()

    def read(fields: str | None, **terms: Any) -> Listed[Any]:
        terms["fields"] = fields or ("standard" if kind.show_priority else "minimal")
        answer = read_with_tool(kind.list_tool, {kind.plural: []}, **terms)
        return Listed(answer[kind.plural], name_more(answer))

    def columns(rows: Sequence[Any]) -> Columns[Any]:
        priority = ["priority"] if kind.show_priority and "priority" in rows[0] else []
        cells = {each.upper(): (lambda row: str(row["priority"])) for each in priority}
        title = {"TITLE": lambda row: str(row["title"])}
        return {name: lambda row: str(row["id"]), "STATUS": _status, **cells, **title}

    def describe(row: Mapping[str, Any], fields: str | None) -> str:
        belongs = row["priority"] if kind.show_priority else row["epic"]
        heading = " · ".join(part for part in (_status(row), belongs) if part)
        lines = [f"{row['id']}  {row['title']}", heading]
        if row["description"]:
            lines += ["", row["description"]]
        if row[kind.children]:
            cells = [(child["id"], _status(child), child["title"]) for child in row[kind.children]]
            lines += ["", format_table((kind.child.upper(), "STATUS", "TITLE"), cells)]
        return "\n".join(lines)

    return Collection(
        kind.plural,
        short_help=short_help,
        help=help_text,
        examples=(
            f"cockpit {kind.plural} --status todo",
            f"cockpit {kind.plural} {kind.key}",
            f'cockpit {kind.plural} add "Single sign-on" {kind.own_option}',
        ),
        row=name,
        columns=columns,
        read=read,
        find=lambda named, fields: read_with_tool(
            f"get_{kind.word}", fields=fields or "standard", **{f"{kind.word}_id": named}
        ),
        describe=describe,
        body=dict,
        none=lambda **_: f"No {kind.plural} match. `cockpit {kind.plural} add TITLE` adds one.",
        filters=[STATUS, kind.filter, FIELDS, LIMIT, OFFSET],
        details=[FIELDS],
    )


def _define_edit(group: click.Group, kind: _Kind) -> None:
    note = (
        "A new priority re-orders the work queue."
        if kind.show_priority
        else "--epic '' takes the story out of its epic."
    )

    @group.command(
        help=f"Change {kind.article} {kind.word}.\n\n{note}",
        epilog=examples(
            f"cockpit {kind.plural} edit {kind.key} --status done",
            f"cockpit {kind.plural} edit {kind.key} {kind.own_option}",
        ),
    )
    @click.argument(kind.word)
    @click.option("--title", metavar="TEXT", help="Set a new title.")
    @kind.option
    @DESCRIPTION
    @STANDING
    @AS_JSON
    def edit(as_json: bool, **fields: Any) -> None:
        identity = fields.pop(kind.word)
        fields["description"] = read_text_argument(fields["description"])
        changes = {name: value for name, value in fields.items() if value is not None}
        if not changes:
            raise WrongUse(
                f"Nothing to change. Pass --title, --{kind.option_name}, --description or --status."
            )

        def step(tx: Any) -> dict[str, Any]:
            from cockpit.backlog import service

            update: Any = service.update_epic if kind is _EPIC else service.update_story
            by = authorize_writer(tx, f"change {kind.plural}")
            return _render(kind, update(tx, identity, changes, by=by))

        _show_change(write_store(step), as_json)


epics = _define_commands(
    _EPIC,
    "Manage epics and their priorities.",
    """Manage epics: the large goals that stories add up to; the most urgent is listed first.

    Write an EPIC as E-1, e1 or 1. P0 is the most urgent priority. One is shown with its stories.
    """,
)
stories = _define_commands(
    _STORY,
    "Manage stories.",
    """Manage stories: groups of tasks with one result; the oldest is listed first.

    Write a STORY as S-12, s12 or 12. One is shown with its tasks.
    """,
)


def _render(kind: _Kind, row: Any) -> dict[str, Any]:
    from cockpit.backlog.response_modes import render_epic, render_story

    return render_epic(row) if kind is _EPIC else render_story(row)


def _status(row: Mapping[str, Any]) -> str:
    return str(row["status"]).replace("_", " ")


def _show_change(row: dict[str, Any], as_json: bool) -> None:
    if as_json:
        show_json(row)
    else:
        show(f"{row['id']} {row['title']}")
