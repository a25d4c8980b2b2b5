"""``cockpit epics`` and ``cockpit stories``: two groups with the same four commands.

Specified in ``docs/reference/backlog.md`` and ``docs/reference/commands.md``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
from msgspec import Struct

from cockpit.cli_options import AS_JSON, TOKEN, examples
from cockpit.commands.backlog.call_work_tools import (
    DESCRIPTION,
    FIELDS,
    LIMIT,
    OFFSET,
    PRIORITY,
    STANDING,
    STATUS,
    authorize_writer,
    read_text_argument,
    read_with_tool,
    say_more,
    write_store,
)
from cockpit.commands.open_project import WrongUse
from cockpit.commands.terminal import format_table, show, show_json, show_list

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


@click.group(
    short_help="Manage epics and their priorities.",
    epilog=examples('cockpit epics add "Single sign-on" --priority P1', "cockpit epics list"),
)
def epics() -> None:
    """Manage epics: the large goals that stories add up to.

    Write an EPIC as E-1, e1 or 1. P0 is the most urgent priority.
    """


@click.group(
    short_help="Manage stories.",
    epilog=examples('cockpit stories add "Refresh tokens" --epic E-1', "cockpit stories list"),
)
def stories() -> None:
    """Manage stories: groups of tasks with one result.

    Write a STORY as S-12, s12 or 12.
    """


def _define_commands(group: click.Group, kind: _Kind) -> None:
    """Give ``group`` the commands ``add``, ``list``, ``show`` and ``edit`` for ``kind``."""
    _define_add(group, kind)
    _define_list(group, kind)
    _define_show(group, kind)
    _define_edit(group, kind)


def _define_add(group: click.Group, kind: _Kind) -> None:
    @group.command(
        help=f"Add {kind.article} {kind.word}.",
        epilog=examples(f'cockpit {kind.plural} add "Single sign-on" {kind.own_option}'),
    )
    @click.argument("title", nargs=-1, required=True)
    @kind.option
    @DESCRIPTION
    @TOKEN
    @AS_JSON
    def add(
        title: tuple[str, ...], description: str | None, token: str, as_json: bool, **own: Any
    ) -> None:
        own = {name: value for name, value in own.items() if value is not None}

        def step(tx: Any) -> dict[str, Any]:
            from cockpit.backlog import service

            create: Any = service.create_epic if kind is _EPIC else service.create_story
            by = authorize_writer(tx, token, f"write {kind.plural}")
            text = read_text_argument(description) or ""
            return _render(kind, create(tx, " ".join(title), description=text, by=by, **own))

        _show_change(write_store(step), as_json)


def _define_list(group: click.Group, kind: _Kind) -> None:
    order = "most urgent first" if kind.show_priority else "oldest first"

    @group.command(
        "list",
        help=f"List {kind.plural}, {order}.",
        epilog=examples(
            f"cockpit {kind.plural} list --status todo",
            f"cockpit {kind.plural} list {kind.own_option} --json",
        ),
    )
    @STATUS
    @kind.filter
    @FIELDS
    @LIMIT
    @OFFSET
    @AS_JSON
    def list_rows(as_json: bool, **arguments: Any) -> None:
        with_priority = kind.show_priority and not as_json
        arguments["fields"] = arguments["fields"] or ("standard" if with_priority else "minimal")
        answer = read_with_tool(kind.list_tool, {kind.plural: []}, **arguments)
        rows = answer[kind.plural]
        priority = ["priority"] if kind.show_priority and rows and "priority" in rows[0] else []
        show_list(
            as_json,
            rows,
            (kind.word.upper(), "STATUS", *(name.upper() for name in priority), "TITLE"),
            [
                (row["id"], _status(row), *(row[name] for name in priority), row["title"])
                for row in rows
            ],
            f"No {kind.plural} match. `cockpit {kind.plural} add TITLE` adds one.",
        )
        say_more(answer)


def _define_show(group: click.Group, kind: _Kind) -> None:
    @group.command(
        "show",
        help=f"Show {kind.article} {kind.word} and its {kind.children}.",
        epilog=examples(f"cockpit {kind.plural} show {kind.key}"),
    )
    @click.argument(kind.word)
    @FIELDS
    @AS_JSON
    def show_row(fields: str | None, as_json: bool, **arguments: str) -> None:
        identity = {f"{kind.word}_id": arguments[kind.word]}
        if as_json:
            show_json(read_with_tool(f"get_{kind.word}", fields=fields or "standard", **identity))
            return
        row = read_with_tool(f"get_{kind.word}", **identity)
        belongs = row["priority"] if kind.show_priority else row["epic"]
        heading = " · ".join(part for part in (_status(row), belongs) if part)
        show(f"{row['id']}  {row['title']}\n{heading}")
        if row["description"]:
            show(f"\n{row['description']}")
        if row[kind.children]:
            cells = [(child["id"], _status(child), child["title"]) for child in row[kind.children]]
            show("\n" + format_table((kind.child.upper(), "STATUS", "TITLE"), cells))


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
    @TOKEN
    @AS_JSON
    def edit(token: str, as_json: bool, **fields: Any) -> None:
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
            by = authorize_writer(tx, token, f"change {kind.plural}")
            return _render(kind, update(tx, identity, changes, by=by))

        _show_change(write_store(step), as_json)


_define_commands(epics, _EPIC)
_define_commands(stories, _STORY)


def _render(kind: _Kind, row: Any) -> dict[str, Any]:
    from cockpit.backlog.response_modes import render_epic, render_story

    return render_epic(row) if kind is _EPIC else render_story(row)


def _status(row: dict[str, Any]) -> str:
    return str(row["status"]).replace("_", " ")


def _show_change(row: dict[str, Any], as_json: bool) -> None:
    if as_json:
        show_json(row)
    else:
        show(f"{row['id']} {row['title']}")
