"""``cockpit tasks``: list and show tasks, stories and epics, and the work queue."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

import click

from cockpit.cli_options import AS_JSON, examples
from cockpit.collections.work.tasks import COLLECTION, Document, kind_of
from cockpit.commands.backlog import task_memory, tasks_change, tasks_import_export
from cockpit.commands.collection import limit_option
from cockpit.commands.collection_groups import make_group
from cockpit.commands.open_project import read_store
from cockpit.commands.terminal import format_table, show_list

if TYPE_CHECKING:
    from cockpit.store.backlog.tasks import Task
    from cockpit.store.backlog.work_queue import Queued

_SHOWN = 10


def _describe(row: Document, fields: str | None) -> str:
    kind = kind_of(row["id"])
    if kind == "task":
        return read_store(lambda connection: _task_text(connection, row["id"]))
    belongs = row.get("priority") or row.get("epic")
    parts = [
        f"{row['id']}  {row['title']}\n{' · '.join(filter(None, (_status_text(row['status']), belongs)))}"
    ]
    if row.get("description"):
        parts.append(row["description"])
    children = row["stories" if kind == "epic" else "tasks"]
    if children:
        cells = [(child["id"], _status_text(child["status"]), child["title"]) for child in children]
        heading = "STORY" if kind == "epic" else "TASK"
        parts.append(format_table((heading, "STATUS", "TITLE"), cells))
    return "\n\n".join(parts)


tasks = make_group(COLLECTION, describe=_describe)

for _command in (*tasks_change.COMMANDS, *task_memory.COMMANDS, *tasks_import_export.COMMANDS):
    tasks.add_command(_command)


@tasks.command(epilog=examples("cockpit tasks queue --ready -n 3", "cockpit tasks queue --why"))
@click.option("--why", is_flag=True, help="Show the score of each task and its parts.")
@click.option("--ready", is_flag=True, help="List only tasks that are ready to start.")
@limit_option(50)
@AS_JSON
def queue(why: bool, ready: bool, limit: int, as_json: bool) -> None:
    """List the work queue in order.

    Tasks of one group can run at the same time; those of group 1 can start next to the ones in progress.
    """

    def read(connection: sqlite3.Connection) -> list[tuple[Queued, dict[str, Any]]]:
        from cockpit.backlog.explain_queue import explain_rows
        from cockpit.store.backlog import work_queue

        rows = work_queue.select(connection, ready=ready or None, limit=limit)
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
    nothing = (
        "No task is ready to start. `cockpit tasks queue --why` says why."
        if ready
        else "The queue is empty."
    )
    show_list(as_json, [reason for _, reason in queued], headings, rows, nothing)


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


def _status_text(status: str) -> str:
    return status.replace("_", " ")
