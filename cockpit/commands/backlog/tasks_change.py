"""``cockpit tasks``: the commands that change tasks, stories and epics."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from cockpit.backlog.validation import TASK_TYPES
from cockpit.cli_options import AS_JSON, examples
from cockpit.collections.work.tasks import kind_of, read_with_tool
from cockpit.commands.backlog.call_work_tools import (
    DESCRIPTION,
    PRIORITY,
    authorize_writer,
    read_text_argument,
    write_store,
    write_with_tool,
    write_with_tools,
)
from cockpit.commands.open_project import WrongUse, find_project, read_store
from cockpit.commands.terminal import say, show, show_json, show_list
from cockpit.core.errors import CockpitError

if TYPE_CHECKING:
    import sqlite3

    from click.shell_completion import CompletionItem

    from cockpit.store.db.transaction import Tx


class _TaskTypeChoice(click.Choice[str]):
    """The built-in types for help, and those of task-type files for completion too.

    A custom type is checked with the task.
    """

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return value

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        from cockpit.backlog.task_type_names import read_names

        try:
            names = read_names(find_project().home)
        except CockpitError:
            names = TASK_TYPES  # outside a project
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]


_TYPE = click.option(
    "--type",
    "task_type",
    type=_TaskTypeChoice(TASK_TYPES),
    help="Set the type of the task, one of these or of your task-type files. Default: feature.",
)
_STORY = click.option("--story", "story_id", metavar="ID", help="Put the task into this story.")
_ACCEPT = click.option(
    "--accept", "acceptance_criteria", metavar="TEXT", help="Set the acceptance criteria."
)
_HOURS = click.option(
    "--estimate", "estimate_hours", type=float, metavar="HOURS", help="Set the estimate, in hours."
)
_PACKAGES = click.option(
    "--package",
    "packages",
    multiple=True,
    metavar="NAME",
    help="Name a package that the task changes. Repeat for more.",
)
_FILES = click.option(
    "--file",
    "files",
    multiple=True,
    metavar="PATH",
    help="Name a file that the task changes. Repeat for more.",
)
_EPIC = click.option("--epic", "epic_id", metavar="ID", help="Put the story into this epic.")
_ONE = click.argument("task")
_OF_PARENTS = {
    "story": frozenset(("title", "description", "epic_id")),
    "epic": frozenset(("title", "description", "priority")),
}
"""By kind: the fields that a story and an epic have. A task has all others."""
_OF_PARENTS_ONLY = frozenset(("epic_id", "priority"))


@click.command(
    epilog=examples(
        'cockpit tasks add "Refresh tokens before they expire" --story S-12 --type bug',
        "cockpit tasks add Write part2 --file part2.py --depends-on T-1",
        'cockpit tasks add "Single sign-on" --kind epic --priority P1',
    )
)
@click.argument("title", nargs=-1, required=True)
@click.option(
    "--kind",
    type=click.Choice(["task", "story", "epic"]),
    default="task",
    show_default=True,
    help="Add this kind.",
)
@_STORY
@_EPIC
@PRIORITY
@_TYPE
@DESCRIPTION
@_ACCEPT
@_HOURS
@_PACKAGES
@_FILES
@click.option(
    "--depends-on",
    "waits_for",
    multiple=True,
    metavar="TASK",
    help="Let the task wait for this one. Repeat for more.",
)
@AS_JSON
def add(
    title: tuple[str, ...], kind: str, waits_for: tuple[str, ...], as_json: bool, **fields: Any
) -> None:
    """Add a task, a story or an epic."""
    changes = _read_fields(kind, {**fields, "waits_for": waits_for})
    changes.pop("waits_for", None)
    if kind != "task":
        _show_change(write_with_tool(f"create_{kind}", title=" ".join(title), **changes), as_json)
        return

    def step(tx: Tx) -> dict[str, Any]:
        from cockpit.backlog import service
        from cockpit.backlog.response_modes import render_task

        by = authorize_writer(tx, "write tasks")
        task_record = service.create_task(tx, " ".join(title), by=by, **changes)
        for other in waits_for:
            service.add_dependency(tx, task_record.task_id, other, by=by)
        return render_task(task_record)

    _show_change(write_store(step), as_json)


def _read_fields(kind: str, fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that were given. Raises ``WrongUse`` for one that this kind has not."""
    fields["description"] = read_text_argument(fields["description"])
    given = {name: value for name, value in fields.items() if value not in (None, ())}
    foreign = (
        given.keys() & _OF_PARENTS_ONLY if kind == "task" else given.keys() - _OF_PARENTS[kind]
    )
    for option in click.get_current_context().command.params:
        if option.name in foreign:
            raise WrongUse(f"{option.opts[0]} is not for a {kind}.".replace("a epic", "an epic"))
    return given


def _show_change(row: dict[str, Any], as_json: bool) -> None:
    if as_json:
        show_json(row)
    else:
        show(f"{row['id']} {row['title']}")


@click.command(
    epilog=examples(
        "cockpit tasks edit T-42",
        "cockpit tasks edit T-42 --estimate 3",
        "cockpit tasks edit E-1 --priority P0",
    )
)
@_ONE
@click.option("--title", metavar="TEXT", help="Set a new title.")
@_STORY
@_EPIC
@PRIORITY
@_TYPE
@DESCRIPTION
@_ACCEPT
@_HOURS
@_PACKAGES
@_FILES
@click.option(
    "--progress",
    "progress_percent",
    type=click.IntRange(0, 100),
    metavar="PERCENT",
    help="Set the progress, in percent.",
)
@click.option(
    "--rework/--no-rework", default=None, help="Mark it as needing rework, or clear that."
)
@AS_JSON
def edit(task: str, rework: bool | None, as_json: bool, **fields: Any) -> None:
    """Change a task, a story or an epic.

    Without options it opens the task in your editor ($VISUAL or $EDITOR). A new priority of an epic
    re-orders the work queue. --epic '' takes a story out of its epic.
    """
    kind = kind_of(task)
    changes = _read_fields(kind, {**fields, "rework": rework})
    if kind != "task":
        if not changes:
            raise WrongUse(
                "Nothing to change. Pass for example --title TEXT or --description TEXT."
            )
        _show_change(write_with_tool(f"update_{kind}", **{f"{kind}_id": task}, **changes), as_json)
        return
    changes.pop("rework", None)
    if rework is not None:
        marked = write_with_tool("set_needs_rework", task_id=task, value=rework)
        say(f"{marked['id']} {'needs rework' if rework else 'needs no rework'}")
        if not changes:
            return
    texts = {} if changes else _edit_in_editor(task)
    if not changes and not texts:
        say("Nothing changed.")
        return

    def step(tx: Tx) -> dict[str, Any]:
        from cockpit.backlog import service, task_form
        from cockpit.backlog.response_modes import render_task

        by = authorize_writer(tx, "change tasks")
        changed = (
            service.update_task(tx, task, changes, by=by)
            if changes
            else task_form.update_task_from_form(tx, task, texts, by=by)
        )
        return render_task(changed, "standard")

    _show_change(write_store(step), as_json)


def _edit_in_editor(named: str) -> dict[str, str]:
    """Return the texts that the user changed in their editor, by field."""
    from cockpit.app.external_editor import edit_text, editor_command
    from cockpit.backlog import form_text, task_form
    from cockpit.backlog.task_type_names import read_names
    from cockpit.store.backlog import tasks
    from widgets.text.clean import clean

    def looked(connection: sqlite3.Connection) -> dict[str, str]:
        task = tasks.load(connection, named)
        return task_form.form_texts(task, task_form.waits_for(connection, task.task_id))

    texts = read_store(looked)
    fields = task_form.task_fields(read_names(find_project().home), texts["type"])
    before = form_text.write_form(
        fields, {each.name: clean(texts[each.name], newlines=each.long) for each in fields}
    )
    was = form_text.read_form(fields, before)
    after = form_text.read_form(fields, edit_text(before, argv=editor_command(os.environ)))
    return {name: text for name, text in after.items() if text != was[name]}


_MOVES = {
    "todo": ("reopen_task", "notes"),
    "in_progress": ("update_task_status", "notes"),
    "review": ("update_task_status", "notes"),
    "done": ("update_task_status", "notes"),
    "blocked": ("set_blocker", "reason"),
    "unblocked": ("resolve_blocker", ""),
    "archived": ("archive_task", "reason"),
}
"""By state: the tool that moves a task there, and the name of its words."""


@click.command(
    epilog=examples(
        "cockpit tasks move T-42 in_progress",
        "cockpit tasks move T-42 T-43 done",
        "cockpit tasks move T-42 blocked --why 'waiting for the API key'",
    )
)
@click.argument("tasks", nargs=-1, required=True, metavar="TASK…")
@click.argument("state", type=click.Choice(tuple(_MOVES)), metavar="STATE")
@click.option("--why", metavar="TEXT", help="Record these words: a note, or the reason.")
@AS_JSON
def move(tasks: tuple[str, ...], state: str, why: str | None, as_json: bool) -> None:
    """Move tasks, stories and epics on.

    STATE is in_progress, review, done, blocked, unblocked, archived, or todo to reopen a finished task with
    its story and epic. The last task of a story completes the story, and the last story its epic. Tasks that
    depend on an archived one no longer wait for it.
    """
    tool, words = _MOVES[state]
    if state == "blocked" and not why and "task" in map(kind_of, tasks):
        raise WrongUse("Pass --why TEXT: whoever looks at a blocked task wants to know.")
    given: dict[str, Any] = {words: why} if words else {}
    if tool == "update_task_status":
        given["status"] = state
    kinds = [(kind_of(name), name) for name in tasks]
    answer = write_with_tools(
        [
            (tool, {"task_id": name, **given})
            if kind == "task"
            else (f"update_{kind}", {f"{kind}_id": name, "status": state})
            for kind, name in kinds
        ]
    )
    if as_json:
        show_json(answer)
        return
    for row in answer:
        show(f"{row['id']} is {row['status'].replace('_', ' ')}")
        boundaries = row.get("boundaries", {})
        if boundaries.get("story_completed"):
            show(f"{boundaries['story_id']} is done with it")
        if boundaries.get("epic_completed"):
            show(f"{boundaries['epic_id']} is done with it")


@click.command(
    epilog=examples(
        "cockpit tasks dep T-4 T-2", "cockpit tasks dep T-4", "cockpit tasks dep T-4 T-2 --remove"
    )
)
@_ONE
@click.argument("on", required=False)
@click.option(
    "--type",
    "kind",
    type=click.Choice(["blocks", "requires", "relates_to"]),
    default="blocks",
    show_default=True,
    help="Add this kind of dependency. With relates_to no task waits.",
)
@click.option("--remove", is_flag=True, help="Remove the dependency on ON.")
@AS_JSON
def dep(task: str, on: str | None, kind: str, remove: bool, as_json: bool) -> None:
    """Add, remove or list dependencies of a task.

    TASK depends on ON. Without ON it lists the dependencies of TASK and the tasks that depend on it. A
    cycle is refused.
    """
    if on is None and remove:
        raise WrongUse("--remove needs ON, for example: cockpit tasks dep T-4 T-2 --remove.")
    if on is None:
        answer = read_store(
            lambda connection: read_with_tool(connection, "get_task_dependencies", task_id=task)
        )
    elif remove:
        answer = write_with_tool("remove_dependency", task_id=task, depends_on_task_id=on)
    else:
        answer = write_with_tool(
            "add_dependency", task_id=task, depends_on_task_id=on, dependency_type=kind
        )
    if as_json:
        show_json(answer)
        return
    rows = [("depends on", row) for row in answer["depends_on"]]
    rows += [
        ("depends on it" if row["type"] == "relates_to" else "unblocks", row)
        for row in answer["dependents"]
    ]
    show_list(
        False,
        [row for _, row in rows],
        ("", "TASK", "TYPE", "STATUS", "TITLE"),
        [
            (relation, row["id"], row["type"], row["status"].replace("_", " "), row["title"])
            for relation, row in rows
        ],
        f"{answer['id']} has no dependencies, and no task depends on it.",
    )


@click.command(
    epilog=examples(
        "cockpit tasks note T-42 'JWT, because it is stateless' --type decision",
        "cockpit tasks note T-42 'The tests only cover the happy path' --failed quality",
    )
)
@_ONE
@click.argument("text", nargs=-1, required=True)
@click.option(
    "--type",
    "kind",
    type=click.Choice(["note", "file_change", "decision", "progress"]),
    default="note",
    show_default=True,
    help="Record it as this kind of activity.",
)
@click.option(
    "--failed",
    type=click.Choice(["spec", "quality", "implementation"]),
    help="Record a failed attempt: at its spec review, its quality review or its implementation.",
)
def note(task: str, text: tuple[str, ...], kind: str, failed: str | None) -> None:
    """Note something, or that an attempt failed."""
    words = " ".join(text)
    if failed is None:
        added = write_with_tool(
            "add_task_activity", task_id=task, activity_type=kind, description=words
        )
        say(f"noted on {added['id']}")
        return
    added = write_with_tool("record_task_failure", task_id=task, failure_type=failed, reason=words)
    say(f"attempt {added['attempt']} at {added['id']} failed: {failed}")


COMMANDS: tuple[click.Command, ...] = (add, edit, move, dep, note)
"""The commands that change the backlog, in the order of the help."""
