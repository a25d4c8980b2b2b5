"""``cockpit epics``: what stories add up to, and which comes first."""

from __future__ import annotations

from typing import Any

import click

from cockpit.commands.backlog.call_work_tools import (
    AS_JSON,
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
from cockpit.commands.command_caller import TOKEN
from cockpit.commands.open_project import WrongUse
from cockpit.commands.terminal import format_table, show, show_json, show_list


@click.group(short_help="What stories add up to, and which comes first.")
def epics() -> None:
    """Epics of this project's backlog. An EPIC is written E-1, e1 or 1; P0 is the most urgent."""


@epics.command()
@click.argument("title", nargs=-1, required=True)
@PRIORITY
@DESCRIPTION
@TOKEN
@AS_JSON
def add(
    title: tuple[str, ...],
    priority: str | None,
    description: str | None,
    token: str,
    as_json: bool,
) -> None:
    """Write an epic called TITLE."""

    def step(tx: Any) -> dict[str, Any]:
        from cockpit.backlog import service
        from cockpit.backlog.response_modes import render_epic

        made = service.create_epic(
            tx,
            " ".join(title),
            description=read_text_argument(description) or "",
            priority=priority or "P2",
            by=authorize_writer(tx, token, "write epics"),
        )
        return render_epic(made)

    _shown(write_store(step), as_json)


@epics.command("list")
@STATUS
@PRIORITY
@FIELDS
@LIMIT
@OFFSET
@AS_JSON
def list_epics(as_json: bool, **arguments: Any) -> None:
    """List epics, the most urgent first."""
    arguments["fields"] = arguments["fields"] or ("minimal" if as_json else "standard")
    answer = read_with_tool("get_epics", {"epics": []}, **arguments)
    more = [name for name in ("priority",) if answer["epics"] and name in answer["epics"][0]]
    show_list(
        as_json,
        answer["epics"],
        ("EPIC", "STATUS", *(name.upper() for name in more), "TITLE"),
        [
            (
                one["id"],
                one["status"].replace("_", " "),
                *(one[name] for name in more),
                one["title"],
            )
            for one in answer["epics"]
        ],
        "There is no such epic; `cockpit epics add TITLE` writes one.",
    )
    say_more(answer)


@epics.command("show")
@click.argument("epic")
@FIELDS
@AS_JSON
def show_epic(epic: str, fields: str | None, as_json: bool) -> None:
    """Show EPIC and its stories."""
    if as_json:
        show_json(read_with_tool("get_epic", epic_id=epic, fields=fields or "standard"))
        return
    found = read_with_tool("get_epic", epic_id=epic)
    show(
        f"{found['id']}  {found['title']}\n{found['status'].replace('_', ' ')} · {found['priority']}"
    )
    if found["description"]:
        show(f"\n{found['description']}")
    if found["stories"]:
        rows = [
            (one["id"], one["status"].replace("_", " "), one["title"]) for one in found["stories"]
        ]
        show("\n" + format_table(("STORY", "STATUS", "TITLE"), rows))


@epics.command()
@click.argument("epic")
@click.option("--title", metavar="TEXT")
@PRIORITY
@DESCRIPTION
@STANDING
@TOKEN
@AS_JSON
def edit(epic: str, token: str, as_json: bool, **fields: Any) -> None:
    """Change EPIC; a new priority re-orders the queue."""
    fields["description"] = read_text_argument(fields["description"])
    changes = {name: value for name, value in fields.items() if value is not None}
    if not changes:
        raise WrongUse("Say what to change: --title, --priority, --description or --status.")

    def step(tx: Any) -> dict[str, Any]:
        from cockpit.backlog import service
        from cockpit.backlog.response_modes import render_epic

        by = authorize_writer(tx, token, "change epics")
        return render_epic(service.update_epic(tx, epic, changes, by=by))

    _shown(write_store(step), as_json)


def _shown(made: dict[str, Any], as_json: bool) -> None:
    if as_json:
        show_json(made)
    else:
        show(f"{made['id']} {made['title']}")
