"""``cockpit stories``: what tasks add up to."""

from __future__ import annotations

from typing import Any

import click

from cockpit.commands.backlog.call_work_tools import (
    AS_JSON,
    DESCRIPTION,
    FIELDS,
    LIMIT,
    OFFSET,
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

_EPIC = click.option("--epic", "epic_id", metavar="ID", help="The epic that it belongs to.")


@click.group(short_help="What tasks add up to.")
def stories() -> None:
    """Stories of this project's backlog. A STORY is written S-12, s12 or 12."""


@stories.command()
@click.argument("title", nargs=-1, required=True)
@_EPIC
@DESCRIPTION
@TOKEN
@AS_JSON
def add(
    title: tuple[str, ...], epic_id: str | None, description: str | None, token: str, as_json: bool
) -> None:
    """Write a story called TITLE."""

    def step(tx: Any) -> dict[str, Any]:
        from cockpit.backlog import service
        from cockpit.backlog.response_modes import render_story

        by = authorize_writer(tx, token, "write stories")
        words = read_text_argument(description) or ""
        made = service.create_story(tx, " ".join(title), epic_id=epic_id, description=words, by=by)
        return render_story(made)

    _shown(write_store(step), as_json)


@stories.command("list")
@STATUS
@click.option("--epic", "epic_id", metavar="ID", help="Only this epic's.")
@FIELDS
@LIMIT
@OFFSET
@AS_JSON
def list_stories(as_json: bool, **arguments: Any) -> None:
    """List stories, the oldest first."""
    arguments["fields"] = arguments["fields"] or "minimal"
    answer = read_with_tool("list_stories", {"stories": []}, **arguments)
    show_list(
        as_json,
        answer["stories"],
        ("STORY", "STATUS", "TITLE"),
        [(one["id"], one["status"].replace("_", " "), one["title"]) for one in answer["stories"]],
        "There is no such story; `cockpit stories add TITLE` writes one.",
    )
    say_more(answer)


@stories.command("show")
@click.argument("story")
@FIELDS
@AS_JSON
def show_story(story: str, fields: str | None, as_json: bool) -> None:
    """Show STORY and its tasks."""
    if as_json:
        show_json(read_with_tool("get_story", story_id=story, fields=fields or "standard"))
        return
    found = read_with_tool("get_story", story_id=story)
    belongs = f" · {found['epic']}" if found["epic"] else ""
    show(f"{found['id']}  {found['title']}\n{found['status'].replace('_', ' ')}{belongs}")
    if found["description"]:
        show(f"\n{found['description']}")
    if found["tasks"]:
        rows = [
            (one["id"], one["status"].replace("_", " "), one["title"]) for one in found["tasks"]
        ]
        show("\n" + format_table(("TASK", "STATUS", "TITLE"), rows))


@stories.command()
@click.argument("story")
@click.option("--title", metavar="TEXT")
@_EPIC
@DESCRIPTION
@STANDING
@TOKEN
@AS_JSON
def edit(story: str, token: str, as_json: bool, **fields: Any) -> None:
    """Change STORY; --epic '' takes it out of its epic."""
    fields["description"] = read_text_argument(fields["description"])
    changes = {name: value for name, value in fields.items() if value is not None}
    if not changes:
        raise WrongUse("Say what to change: --title, --epic, --description or --status.")

    def step(tx: Any) -> dict[str, Any]:
        from cockpit.backlog import service
        from cockpit.backlog.response_modes import render_story

        by = authorize_writer(tx, token, "change stories")
        return render_story(service.update_story(tx, story, changes, by=by))

    _shown(write_store(step), as_json)


def _shown(made: dict[str, Any], as_json: bool) -> None:
    if as_json:
        show_json(made)
    else:
        show(f"{made['id']} {made['title']}")
