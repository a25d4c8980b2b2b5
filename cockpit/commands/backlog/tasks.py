"""``cockpit tasks``: what is to be done, how it stands, and what comes next."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

import click

from cockpit.commands.backlog import tasks_change, tasks_import_export
from cockpit.commands.backlog.call_work_tools import (
    AS_JSON,
    FIELDS,
    LIMIT,
    OFFSET,
    PRIORITY,
    STATUS,
    UNCAPPED,
    read_with_tool,
    say_more,
)
from cockpit.commands.open_project import read_store
from cockpit.commands.terminal import format_table, say, show, show_json, show_list

if TYPE_CHECKING:
    from cockpit.store.backlog.tasks import Task
    from cockpit.store.backlog.work_queue import Queued

_NONE = "There is no task yet; `cockpit tasks add TITLE` writes one."
_SHOWN = 10


@click.group(short_help="What is to be done, and how it stands.")
def tasks() -> None:
    """Tasks of this project's backlog. A TASK is written T-42, t42 or 42."""


for _command in (*tasks_change.COMMANDS, *tasks_import_export.COMMANDS):
    tasks.add_command(_command)


@tasks.command("list")
@STATUS
@PRIORITY
@click.option("--story", "story_id", metavar="ID", help="Only this story's.")
@click.option("--epic", "epic_id", metavar="ID", help="Only this epic's.")
@FIELDS
@LIMIT
@OFFSET
@AS_JSON
def list_tasks(
    as_json: bool, fields: str | None, limit: int, offset: int, **terms: str | None
) -> None:
    """List tasks, the oldest first; archived ones only with --status archived."""

    def read(connection: sqlite3.Connection) -> dict[str, Any]:
        from cockpit.backlog.tools.find_tools import page_of_tasks

        known = _named(connection, terms)
        return page_of_tasks(connection, known, limit, offset, fields or "minimal", UNCAPPED)

    answer: dict[str, Any] = read_store(read, empty={"tasks": []})
    found = answer["tasks"]
    more = [name for name in ("type", "story", "priority") if found and name in found[0]]
    show_list(
        as_json,
        found,
        ("TASK", "STATUS", *(name.upper() for name in more), "TITLE"),
        [
            (
                one["id"],
                _words(one["status"]),
                *(str(one[name] or "–") for name in more),
                one["title"],
            )
            for one in found
        ],
        "No task is like that." if any(terms.values()) else _NONE,
    )
    say_more(answer)


@tasks.command("show")
@click.argument("task")
@FIELDS
@AS_JSON
def show_task(task: str, fields: str | None, as_json: bool) -> None:
    """Show TASK: its words, what it waits for, what happened on it."""
    if as_json:
        show_json(read_with_tool("get_task", task_id=task, fields=fields or "standard"))
        return
    show(read_store(lambda connection: _told(connection, task)))


@tasks.command("next")
@click.option("--limit", type=click.IntRange(1, 50), default=3, show_default=True)
@FIELDS
@AS_JSON
def next_tasks(limit: int, fields: str | None, as_json: bool) -> None:
    """List the tasks to begin now: they can all be worked on at once."""
    empty = {"tasks": [], "ready": 0}
    answer = read_with_tool("get_next_batch", empty, limit=limit, fields=fields or "minimal")
    found = answer["tasks"]
    rows = [(one["id"], one["title"]) for one in found]
    nothing = "No task can be begun now."
    show_list(as_json, found, ("TASK", "TITLE"), rows, nothing)
    if not found and not as_json and "held_by" in answer:
        busy = ", ".join(answer["held_by"])
        say(f"{answer['ready']} could begin, but touch what is changed now by {busy}.")
    if found and not as_json:
        say(f"{answer['ready']} ready in all; `cockpit tasks queue --why` says why in this order.")


@tasks.command()
@click.option("--why", is_flag=True, help="Say what each place in the queue is made of.")
@click.option("--ready", is_flag=True, help="Only what can be begun.")
@LIMIT
@OFFSET
@AS_JSON
def queue(why: bool, ready: bool, limit: int, offset: int, as_json: bool) -> None:
    """List the work queue: what comes first, and which can run at the same time."""

    def read(connection: sqlite3.Connection) -> list[tuple[Queued, dict[str, Any]]]:
        from cockpit.backlog.explain_queue import explain_rows
        from cockpit.store.backlog import work_queue

        rows = work_queue.select(connection, ready=ready or None, limit=limit, offset=offset)
        return list(zip(rows, explain_rows(connection, rows), strict=True))

    found: list[tuple[Queued, dict[str, Any]]] = read_store(read, empty=[])
    last = ("SCORE", "WHY") if why else ("TITLE",)
    rows = [
        (
            row.task_id,
            str(row.batch_group) if row.batch_group else "–",
            row.priority,
            str(row.unblocks),
            *((f"{row.priority_score:,}", reason["why"]) if why else (row.title,)),
        )
        for row, reason in found
    ]
    headings = ("TASK", "GROUP", "PRIORITY", "UNBLOCKS", *last)
    nothing = "The queue ends before that." if offset else "The queue is empty."
    show_list(as_json, [reason for _, reason in found], headings, rows, nothing)


@tasks.command()
@click.option("--all", "everything", is_flag=True, help="With what is done.")
@click.option("--limit", type=click.IntRange(1, 200), default=20, show_default=True)
@FIELDS
@AS_JSON
def board(everything: bool, limit: int, fields: str | None, as_json: bool) -> None:
    """Draw the board: a column for each status."""
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
        show(_drawn(answer["columns"]))


def _named(connection: sqlite3.Connection, terms: dict[str, str | None]) -> dict[str, str | None]:
    """The terms with the ids as the store has them. Raises ``NotFound``."""
    from cockpit.store.backlog.epics_and_stories import EPICS, STORIES

    found = dict(terms)
    if found["story_id"]:
        found["story_id"] = STORIES.load(connection, found["story_id"]).story_id
    if found["epic_id"]:
        found["epic_id"] = EPICS.load(connection, found["epic_id"]).epic_id
    return found


def _told(connection: sqlite3.Connection, named: str) -> str:
    from cockpit.store.backlog import dependencies, handoffs, task_activity, tasks

    task = tasks.load(connection, named)
    parts = [_heading(task)]
    for title, words in (
        ("", task.description),
        ("Acceptance criteria", task.acceptance_criteria),
        ("Blocked by", task.blocker),
        ("Summary", task.context_summary),
        ("Notes", task.handoff_notes),
    ):
        if words:
            parts.append(f"{title}\n{words}" if title else words)
    waits = [
        (
            one.depends_on_task_id,
            one.dependency_type,
            _words(one.depends_on_status),
            one.depends_on_title,
        )
        for one in dependencies.select_prerequisites(connection, task.task_id)
    ]
    if waits:
        parts.append(format_table(("DEPENDS ON", "TYPE", "STATUS", "TITLE"), waits))
    behind = [
        one
        for one in dependencies.select_dependents(connection, task.task_id)
        if one.dependency_type != "relates_to"
    ]
    if behind:
        parts.append(f"Unblocks {', '.join(one.task_id for one in behind)}")
    if task.packages or task.files:
        parts.append(f"Touches {', '.join((*task.packages, *task.files))}")
    if task.wip:
        from cockpit.learn.resume_text import resume_line

        parts.append(resume_line(task))
    handed = handoffs.find(connection, task.task_id)
    if handed is not None:
        parts.append(f"Handoff {handed.status}: {handed.summary}")
    failed = [
        (str(one.attempt), one.failure_type, one.created_at[:16].replace("T", " "), one.reason)
        for one in task_activity.select_failures(connection, task.task_id)[:_SHOWN]
    ]
    if failed:
        parts.append(format_table(("ATTEMPT", "FAILED AT", "WHEN", "WHY"), failed))
    happened = [
        (one.created_at[:16].replace("T", " "), one.actor, one.activity_type, one.description)
        for one in task_activity.select_for_task(connection, task.task_id, _SHOWN)
    ]
    if happened:
        parts.append(format_table(("WHEN", "WHO", "WHAT", ""), happened))
    return "\n\n".join(parts)


def _heading(task: Task) -> str:
    about = [_words(task.status), task.task_type, task.priority]
    about += [identity for identity in (task.story_id, task.epic_id) if identity]
    if task.estimate_hours is not None:
        about.append(f"{task.estimate_hours:g} h")
    if 0 < task.progress_percent < 100:
        about.append(f"{task.progress_percent} %")
    if task.needs_rework:
        about.append("needs rework")
    return f"{task.task_id}  {task.title}\n{' · '.join(about)}"


def _drawn(columns: dict[str, Any]) -> str:
    from io import StringIO
    from shutil import get_terminal_size

    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from widgets.text.clean import clean

    drawn = Table(box=box.SIMPLE_HEAD, expand=True, padding=(0, 1))
    for status, column in columns.items():
        drawn.add_column(f"{_words(status)} {column['count']}", ratio=1, overflow="fold")
    cells = []
    for column in columns.values():
        lines = [f"{one['id']} {clean(one['title'], newlines=False)}" for one in column["tasks"]]
        if column.get("more"):
            lines.append(f"… {column['more']} more")
        cells.append(Text("\n\n".join(lines)))
    drawn.add_row(*cells)
    paper = StringIO()
    console = Console(file=paper, width=get_terminal_size((100, 24)).columns, color_system=None)
    console.print(drawn)
    return "\n".join(line.rstrip() for line in paper.getvalue().splitlines()).strip("\n")


def _words(status: str) -> str:
    return status.replace("_", " ")
