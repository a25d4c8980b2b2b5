"""``cockpit tasks``: writing tasks and saying how they stand."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from cockpit.backlog.validation import TASK_TYPES
from cockpit.cli_options import TOKEN
from cockpit.commands.backlog.call_work_tools import (
    AS_JSON,
    DESCRIPTION,
    authorize_writer,
    read_text_argument,
    read_with_tool,
    write_store,
    write_with_tool,
    write_with_tool_each,
)
from cockpit.commands.open_project import WrongUse, read_store
from cockpit.commands.terminal import say, show, show_json, show_list

if TYPE_CHECKING:
    import sqlite3

    from cockpit.store.db.transaction import Tx

_TYPE = click.option("--type", "task_type", type=click.Choice(TASK_TYPES), help="Default: feature.")
_STORY = click.option("--story", "story_id", metavar="ID", help="The story that it belongs to.")
_ACCEPT = click.option("--accept", "acceptance_criteria", metavar="TEXT", help="When it is done.")
_HOURS = click.option("--estimate", "estimate_hours", type=float, metavar="HOURS")
_PACKAGES = click.option(
    "--package", "packages", multiple=True, metavar="NAME", help="It works in; may be given again."
)
_FILES = click.option(
    "--file", "files", multiple=True, metavar="PATH", help="It touches; may be given again."
)
_NOTES = click.option("--notes", metavar="TEXT", help="Why, for whoever looks.")
_MANY = click.argument("tasks", nargs=-1, required=True, metavar="TASK…")
_ONE = click.argument("task")


@click.command()
@click.argument("title", nargs=-1, required=True)
@_STORY
@_TYPE
@DESCRIPTION
@_ACCEPT
@_HOURS
@_PACKAGES
@_FILES
@click.option(
    "--depends-on", "waits_for", multiple=True, metavar="TASK", help="It waits for; again for more."
)
@TOKEN
@AS_JSON
def add(
    title: tuple[str, ...], waits_for: tuple[str, ...], token: str, as_json: bool, **fields: Any
) -> None:
    """Write a task called TITLE."""
    fields["description"] = read_text_argument(fields["description"])
    given = {name: value for name, value in fields.items() if value not in (None, ())}

    def step(tx: Tx) -> dict[str, Any]:
        from cockpit.backlog import service
        from cockpit.backlog.response_modes import render_task

        by = authorize_writer(tx, token, "write tasks")
        made = service.create_task(tx, " ".join(title), by=by, **given)
        for other in waits_for:
            service.add_dependency(tx, made.task_id, other, by=by)
        return render_task(made)

    made = write_store(step)
    if as_json:
        show_json(made)
    else:
        show(f"{made['id']} {made['title']}")


@click.command()
@_ONE
@click.option("--title", metavar="TEXT")
@_STORY
@_TYPE
@DESCRIPTION
@_ACCEPT
@_HOURS
@_PACKAGES
@_FILES
@click.option("--progress", "progress_percent", type=click.IntRange(0, 100), metavar="PERCENT")
@TOKEN
@AS_JSON
def edit(task: str, token: str, as_json: bool, **fields: Any) -> None:
    """Change TASK: by options, or without any in your editor ($VISUAL, $EDITOR)."""
    fields["description"] = read_text_argument(fields["description"])
    given = {name: value for name, value in fields.items() if value not in (None, ())}
    words = {} if given else _edited(task)
    if not given and not words:
        say("Nothing changed.")
        return

    def step(tx: Tx) -> dict[str, Any]:
        from cockpit.backlog import service, task_form
        from cockpit.backlog.response_modes import render_task

        by = authorize_writer(tx, token, "change tasks")
        changed = (
            service.update_task(tx, task, given, by=by)
            if given
            else task_form.update_task_from_form(tx, task, words, by=by)
        )
        return render_task(changed, "standard")

    made = write_store(step)
    if as_json:
        show_json(made)
    else:
        show(f"{made['id']} {made['title']}")


def _edited(named: str) -> dict[str, str]:
    """The words that the person changed in their editor, by field; empty: nothing."""
    from cockpit.app.external_editor import command, edited
    from cockpit.backlog import form_text, task_form
    from cockpit.store.backlog import tasks
    from widgets.text.clean import clean

    def looked(connection: sqlite3.Connection) -> dict[str, str]:
        task = tasks.load(connection, named)
        return task_form.form_texts(task, task_form.waits_for(connection, task.task_id))

    words = read_store(looked)
    fields = task_form.FIELDS
    before = form_text.write_form(
        fields, {each.name: clean(words[each.name], newlines=each.long) for each in fields}
    )
    was = form_text.read_form(fields, before)
    after = form_text.read_form(fields, edited(before, argv=command(os.environ)))
    return {name: text for name, text in after.items() if text != was[name]}


@click.command()
@_MANY
@_NOTES
@TOKEN
@AS_JSON
def start(tasks: tuple[str, ...], notes: str | None, token: str, as_json: bool) -> None:
    """Begin TASK."""
    _stand(tasks, "in_progress", notes, token, as_json)


@click.command()
@_MANY
@_NOTES
@TOKEN
@AS_JSON
def review(tasks: tuple[str, ...], notes: str | None, token: str, as_json: bool) -> None:
    """TASK is done and waits to be looked at."""
    _stand(tasks, "review", notes, token, as_json)


@click.command()
@_MANY
@_NOTES
@TOKEN
@AS_JSON
def done(tasks: tuple[str, ...], notes: str | None, token: str, as_json: bool) -> None:
    """Finish TASK. The last one of a story finishes that, and the last story its epic."""
    _stand(tasks, "done", notes, token, as_json)


def _stand(
    tasks: tuple[str, ...], status: str, notes: str | None, token: str, as_json: bool
) -> None:
    found = write_with_tool_each(
        "update_task_status",
        token,
        [{"task_id": task, "status": status, "notes": notes} for task in tasks],
    )
    if as_json:
        show_json(found)
        return
    for one in found:
        show(f"{one['id']} is {one['status'].replace('_', ' ')}")
        reached = one["boundaries"]
        if reached["story_completed"]:
            show(f"{reached['story_id']} is done with it")
        if reached["epic_completed"]:
            show(f"{reached['epic_id']} is done with it")


@click.command()
@_ONE
@click.argument("reason", nargs=-1, required=True)
@TOKEN
@AS_JSON
def block(task: str, reason: tuple[str, ...], token: str, as_json: bool) -> None:
    """TASK cannot go on, for REASON."""
    _shown(write_with_tool("set_blocker", token, task_id=task, reason=" ".join(reason)), as_json)


@click.command()
@_ONE
@TOKEN
@AS_JSON
def unblock(task: str, token: str, as_json: bool) -> None:
    """TASK can go on."""
    _shown(write_with_tool("resolve_blocker", token, task_id=task), as_json)


@click.command()
@_ONE
@_NOTES
@TOKEN
@AS_JSON
def reopen(task: str, notes: str | None, token: str, as_json: bool) -> None:
    """TASK is to be done after all, and its story and epic with it."""
    _shown(write_with_tool("reopen_task", token, task_id=task, notes=notes), as_json)


@click.command()
@_ONE
@click.option("--reason", metavar="TEXT")
@TOKEN
@AS_JSON
def archive(task: str, reason: str | None, token: str, as_json: bool) -> None:
    """Put TASK away: nobody will do it, and nothing waits for it."""
    _shown(write_with_tool("archive_task", token, task_id=task, reason=reason), as_json)


def _shown(found: dict[str, Any], as_json: bool) -> None:
    if as_json:
        show_json(found)
    else:
        show(f"{found['id']} is {found['status'].replace('_', ' ')}")


@click.command()
@_ONE
@click.argument("on", required=False)
@click.option(
    "--type",
    "kind",
    type=click.Choice(["blocks", "requires", "relates_to"]),
    default="blocks",
    show_default=True,
    help="relates_to makes nobody wait.",
)
@click.option("--remove", is_flag=True, help="It depends on it no more.")
@TOKEN
@AS_JSON
def dep(task: str, on: str | None, kind: str, remove: bool, token: str, as_json: bool) -> None:
    """TASK depends on ON; without ON list what TASK depends on, and what on it."""
    if on is None and remove:
        raise WrongUse("Say on which task it depends no more: cockpit tasks dep T-4 T-2 --remove.")
    if on is None:
        found = read_with_tool("get_task_dependencies", task_id=task)
    elif remove:
        found = write_with_tool("remove_dependency", token, task_id=task, depends_on_task_id=on)
    else:
        found = write_with_tool(
            "add_dependency", token, task_id=task, depends_on_task_id=on, dependency_type=kind
        )
    if as_json:
        show_json(found)
        return
    rows = [("depends on", one) for one in found["depends_on"]]
    rows += [
        ("depends on it" if one["type"] == "relates_to" else "unblocks", one)
        for one in found["dependents"]
    ]
    show_list(
        False,
        [one for _, one in rows],
        ("", "TASK", "TYPE", "STATUS", "TITLE"),
        [
            (way, one["id"], one["type"], one["status"].replace("_", " "), one["title"])
            for way, one in rows
        ],
        f"{found['id']} depends on nothing, and nothing on it.",
    )


@click.command()
@_ONE
@click.argument("words", nargs=-1, required=True)
@click.option(
    "--type",
    "kind",
    type=click.Choice(["note", "file_change", "decision", "progress"]),
    default="note",
    show_default=True,
)
@TOKEN
def note(task: str, words: tuple[str, ...], kind: str, token: str) -> None:
    """Note what happened on TASK."""
    made = write_with_tool(
        "add_task_activity", token, task_id=task, activity_type=kind, description=" ".join(words)
    )
    say(f"noted on {made['id']}")


@click.command()
@_ONE
@click.argument("kind", type=click.Choice(["spec", "quality", "implementation"]))
@click.argument("reason", nargs=-1, required=True)
@click.option("--attempt", type=click.IntRange(1, 1000), help="Default: the one after the last.")
@TOKEN
def fail(task: str, kind: str, reason: tuple[str, ...], attempt: int | None, token: str) -> None:
    """An attempt at TASK failed at its spec, its quality or its implementation."""
    made = write_with_tool(
        "record_task_failure",
        token,
        task_id=task,
        failure_type=kind,
        reason=" ".join(reason),
        attempt=attempt,
    )
    say(f"attempt {made['attempt']} at {made['id']} failed: {kind}")


@click.command()
@_ONE
@click.option("--off", is_flag=True, help="It is right now.")
@TOKEN
def rework(task: str, off: bool, token: str) -> None:
    """The work on TASK has to be done again."""
    made = write_with_tool("set_needs_rework", token, task_id=task, value=not off)
    say(f"{made['id']} {'needs no rework' if off else 'needs rework'}")


COMMANDS: tuple[click.Command, ...] = (
    add,
    edit,
    start,
    review,
    done,
    block,
    unblock,
    reopen,
    archive,
    dep,
    note,
    fail,
    rework,
)
"""The commands that write, in the order of the help."""
