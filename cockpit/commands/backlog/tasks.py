"""``cockpit tasks``: list and show tasks, the work queue and the board."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from cockpit.cli_options import AS_JSON, examples
from cockpit.commands.backlog import tasks_change, tasks_import_export
from cockpit.commands.backlog.call_work_tools import (
    FIELDS,
    LIMIT,
    OFFSET,
    PRIORITY,
    STATUS,
    UNCAPPED,
    name_more,
    read_with_tool,
)
from cockpit.commands.collection import Collection, Columns, Listed
from cockpit.commands.open_project import read_store
from cockpit.commands.terminal import format_table, say, show, show_json, show_list
from cockpit.core.text import pluralize

if TYPE_CHECKING:
    from cockpit.store.backlog.tasks import Task
    from cockpit.store.backlog.work_queue import Queued

_NONE = "No tasks yet. `cockpit tasks add TITLE` adds one."
_SHOWN = 10


def _read(
    fields: str | None, limit: int, offset: int, **terms: str | None
) -> Listed[dict[str, Any]]:
    def read(connection: sqlite3.Connection) -> dict[str, Any]:
        from cockpit.backlog.tools.query_tools import page_of_tasks

        resolved = _resolve_ids(connection, terms)
        return page_of_tasks(connection, resolved, limit, offset, fields or "minimal", UNCAPPED)

    answer: dict[str, Any] = read_store(read, empty={"tasks": []})
    return Listed(answer["tasks"], name_more(answer))


def _columns(rows: Sequence[dict[str, Any]]) -> Columns[dict[str, Any]]:
    columns: dict[str, Callable[[dict[str, Any]], str]] = {
        "TASK": lambda row: row["id"],
        "STATUS": lambda row: _status_text(row["status"]),
        "TYPE": lambda row: row["type"] or "–",
        "STORY": lambda row: row["story"] or "–",
        "PRIORITY": lambda row: row["priority"] or "–",
        "TITLE": lambda row: row["title"],
    }
    filled = {"TASK", *(name.upper() for name in rows[0])}
    return {heading: cell for heading, cell in columns.items() if heading in filled}


tasks = Collection(
    "tasks",
    short_help="Manage tasks.",
    help="""Manage the tasks of this project's backlog; the oldest is listed first.

    Write a TASK as T-42, t42 or 42. One is shown with its history. Archived tasks are listed only with
    --status archived. `cockpit chain diff`, `take` and `drop` show, merge and remove a task's branch.
    """,
    examples=(
        "cockpit tasks --story S-12 --status blocked",
        "cockpit tasks T-42",
        'cockpit tasks add "Refresh tokens before they expire"',
        "cockpit tasks move T-42 done",
    ),
    row="TASK",
    columns=_columns,
    read=_read,
    find=lambda name, fields: read_with_tool("get_task", task_id=name, fields=fields or "standard"),
    describe=lambda row, fields: read_store(lambda connection: _task_text(connection, row["id"])),
    body=dict,
    none=lambda fields, limit, offset, **terms: "No tasks match." if any(terms.values()) else _NONE,
    filters=[
        STATUS,
        PRIORITY,
        click.option("--story", "story_id", metavar="ID", help="List only tasks of this story."),
        click.option("--epic", "epic_id", metavar="ID", help="List only tasks of this epic."),
        FIELDS,
        LIMIT,
        OFFSET,
    ],
    details=[FIELDS],
)

for _command in (*tasks_change.COMMANDS, *tasks_import_export.COMMANDS):
    tasks.add_command(_command)


@tasks.command("next", epilog=examples("cockpit tasks next --limit 5"))
@click.option(
    "--limit",
    type=click.IntRange(1, 50),
    default=3,
    show_default=True,
    help="List at most this many tasks.",
)
@FIELDS
@AS_JSON
def next_tasks(limit: int, fields: str | None, as_json: bool) -> None:
    """List the tasks to start next.

    The listed tasks do not conflict, so they can be worked on at the same time.
    """
    empty = {"tasks": [], "ready": 0}
    answer = read_with_tool("get_next_batch", empty, limit=limit, fields=fields or "minimal")
    rows = answer["tasks"]
    cells = [(row["id"], row["title"]) for row in rows]
    nothing = "No task is ready to start. `cockpit tasks queue --why` says why."
    show_list(as_json, rows, ("TASK", "TITLE"), cells, nothing)
    if not rows and not as_json and "held_by" in answer:
        busy = ", ".join(answer["held_by"])
        say(f"{answer['ready']} are ready, but change the same files as {busy}, in progress now.")
    if rows and not as_json:
        ready = pluralize(answer["ready"], "task")
        say(f"{ready} ready in all. `cockpit tasks queue --why` explains the order.")


@tasks.command(epilog=examples("cockpit tasks queue", "cockpit tasks queue --why --ready"))
@click.option("--why", is_flag=True, help="Show the score of each task and its parts.")
@click.option("--ready", is_flag=True, help="List only tasks that are ready to start.")
@LIMIT
@OFFSET
@AS_JSON
def queue(why: bool, ready: bool, limit: int, offset: int, as_json: bool) -> None:
    """List the work queue in order.

    Tasks of one group can run at the same time.
    """

    def read(connection: sqlite3.Connection) -> list[tuple[Queued, dict[str, Any]]]:
        from cockpit.backlog.explain_queue import explain_rows
        from cockpit.store.backlog import work_queue

        rows = work_queue.select(connection, ready=ready or None, limit=limit, offset=offset)
        return list(zip(rows, explain_rows(connection, rows), strict=True))

    queued: list[tuple[Queued, dict[str, Any]]] = read_store(read, empty=[])
    last = ("SCORE", "WHY") if why else ("TITLE",)
    rows = [
        (
            row.task_id,
            str(row.batch_group) if row.batch_group else "–",
            row.queue_priority,
            str(row.unblocks),
            *((f"{row.priority_score:,}", reason["why"]) if why else (row.title,)),
        )
        for row, reason in queued
    ]
    headings = ("TASK", "GROUP", "PRIORITY", "UNBLOCKS", *last)
    nothing = "The queue is shorter than --offset." if offset else "The queue is empty."
    show_list(as_json, [reason for _, reason in queued], headings, rows, nothing)


@tasks.command(epilog=examples("cockpit tasks board", "cockpit tasks board --all"))
@click.option("--all", "everything", is_flag=True, help="Show finished tasks too.")
@click.option(
    "--limit",
    type=click.IntRange(1, 200),
    default=20,
    show_default=True,
    help="Show at most this many tasks in a column.",
)
@FIELDS
@AS_JSON
def board(everything: bool, limit: int, fields: str | None, as_json: bool) -> None:
    """Show the board, one column per status."""
    answer = read_with_tool(
        "get_kanban_board",
        {"columns": {}},
        include_done=everything,
        limit_per_column=limit,
        fields=fields or "minimal",
    )
    if as_json:
        show_json(answer)
    elif not any(column["count"] for column in answer["columns"].values()):
        say(_NONE)
    else:
        show(_draw_board(answer["columns"]))


def _resolve_ids(
    connection: sqlite3.Connection, terms: dict[str, str | None]
) -> dict[str, str | None]:
    """Return the terms with full ids. Raises ``NotFound``."""
    from cockpit.store.backlog.epics_and_stories import EPICS, STORIES

    rows = dict(terms)
    if rows["story_id"]:
        rows["story_id"] = STORIES.load(connection, rows["story_id"]).story_id
    if rows["epic_id"]:
        rows["epic_id"] = EPICS.load(connection, rows["epic_id"]).epic_id
    return rows


def _task_text(connection: sqlite3.Connection, named: str) -> str:
    from cockpit.store.backlog import dependencies, handoffs, task_activity, tasks

    task = tasks.load(connection, named)
    parts = [_heading(task)]
    for title, text in (
        ("", task.description),
        ("Acceptance criteria", task.acceptance_criteria),
        ("Blocked by", task.blocker),
        ("Summary", task.context_summary),
        ("Notes", task.handoff_notes),
    ):
        if text:
            parts.append(f"{title}\n{text}" if title else text)
    waits = [
        (
            row.depends_on_task_id,
            row.dependency_type,
            _status_text(row.depends_on_status),
            row.depends_on_title,
        )
        for row in dependencies.select_prerequisites(connection, task.task_id)
    ]
    if waits:
        parts.append(format_table(("DEPENDS ON", "TYPE", "STATUS", "TITLE"), waits))
    behind = [
        row
        for row in dependencies.select_dependents(connection, task.task_id)
        if row.dependency_type != "relates_to"
    ]
    if behind:
        parts.append(f"Unblocks {', '.join(row.task_id for row in behind)}")
    if task.packages or task.files:
        parts.append(f"Touches {', '.join((*task.packages, *task.files))}")
    from cockpit.loop.planner.read_session_estimate import describe_task_estimate

    if estimated := describe_task_estimate(connection, task.task_id):
        parts.append(f"Estimated {estimated}")
    if task.wip:
        from cockpit.learn.resume_text import resume_line

        parts.append(resume_line(task))
    handed = handoffs.find(connection, task.task_id)
    if handed is not None:
        parts.append(f"Handoff {handed.status}: {handed.summary}")
    failed = [
        (str(row.attempt), row.failure_type, row.created_at[:16].replace("T", " "), row.reason)
        for row in task_activity.select_failures(connection, task.task_id)[:_SHOWN]
    ]
    if failed:
        parts.append(format_table(("ATTEMPT", "FAILED AT", "WHEN", "WHY"), failed))
    happened = [
        (row.created_at[:16].replace("T", " "), row.actor, row.activity_type, row.description)
        for row in task_activity.select_for_task(connection, task.task_id, _SHOWN)
    ]
    if happened:
        parts.append(format_table(("WHEN", "WHO", "WHAT", ""), happened))
    return "\n\n".join(parts)


def _heading(task: Task) -> str:
    about = [_status_text(task.status), task.task_type, task.priority]
    about += [identity for identity in (task.story_id, task.epic_id) if identity]
    if task.estimate_hours is not None:
        about.append(f"{task.estimate_hours:g} h")
    if 0 < task.progress_percent < 100:
        about.append(f"{task.progress_percent} %")
    if task.needs_rework:
        about.append("needs rework")
    return f"{task.task_id}  {task.title}\n{' · '.join(about)}"


def _draw_board(columns: dict[str, Any]) -> str:
    from io import StringIO
    from shutil import get_terminal_size

    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from widgets.text.clean import clean

    drawn = Table(box=box.SIMPLE_HEAD, expand=True, padding=(0, 1))
    for status, column in columns.items():
        drawn.add_column(f"{_status_text(status)} {column['count']}", ratio=1, overflow="fold")
    cells = []
    for column in columns.values():
        lines = [f"{row['id']} {clean(row['title'], newlines=False)}" for row in column["tasks"]]
        if column.get("more"):
            lines.append(f"… {column['more']} more")
        cells.append(Text("\n\n".join(lines)))
    drawn.add_row(*cells)
    paper = StringIO()
    console = Console(file=paper, width=get_terminal_size((100, 24)).columns, color_system=None)
    console.print(drawn)
    return "\n".join(line.rstrip() for line in paper.getvalue().splitlines()).strip("\n")


def _status_text(status: str) -> str:
    return status.replace("_", " ")
