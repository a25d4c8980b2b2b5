"""``cockpit handoff``: show, list and set handoffs of tasks."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cockpit.cli_options import AS_JSON, examples
from cockpit.commands.backlog.call_work_tools import authorize_writer, write_store
from cockpit.commands.collection import Collection, limit_option
from cockpit.commands.open_project import WrongUse, read_store
from cockpit.commands.terminal import show, show_json
from cockpit.store.backlog import handoffs, tasks
from cockpit.store.backlog.handoffs import Handoff

if TYPE_CHECKING:
    from cockpit.store.db.transaction import Tx


def _read(limit: int) -> Sequence[Handoff]:
    return read_store(lambda connection: handoffs.select_recent(connection, limit), empty=[])


def _find(name: str, details: bool) -> Handoff:
    return read_store(lambda connection: handoffs.load(connection, name))


def _describe(stored: Handoff, details: bool) -> str:
    lines = [f"{stored.task_id} · {stored.status} · {stored.created_at}", stored.summary]
    lines += [f"  {path}" for path in stored.files_changed]
    if stored.archived_at:
        lines.append(f"Archived when its epic was complete, {stored.archived_at}.")
    elif stored.compacted_at:
        lines.append(
            f"The details were deleted when its story was complete, {stored.compacted_at}."
        )
    elif details:
        lines += ["", stored.full_details or "No details."]
    elif stored.full_details:
        size = len(stored.full_details)
        lines.append(f"{size:,} characters of details: cockpit handoff {stored.task_id} --details")
    return "\n".join(lines)


def _describe_details(row: Handoff) -> str:
    return "compacted" if row.compacted_at else "whole" if row.full_details else "none"


handoff = Collection(
    "handoff",
    short_help="Manage handoffs of tasks.",
    help="""Show, list and set handoffs: the status, summary and details of a finished task; newest first.

    When a story is complete, its details are deleted; when its epic is complete, the rest moves to the
    journal. Handoffs with FAIL or BLOCKED stay complete.
    """,
    examples=("cockpit handoff --limit 5", "cockpit handoff T-42 --details"),
    row="TASK",
    columns={
        "TASK": lambda row: row.task_id,
        "STATUS": lambda row: row.status,
        "FILES": lambda row: str(len(row.files_changed)),
        "DETAILS": _describe_details,
        "SUMMARY": lambda row: row.summary.splitlines()[0],
    },
    read=_read,
    find=_find,
    describe=_describe,
    none="No handoffs yet. `cockpit handoff set` writes one when a task ends.",
    body=lambda row: row.body(),
    document=lambda row, details: row.body(details=details),
    filters=[limit_option(20)],
    details=[click.option("--details", is_flag=True, help="Print the full details of one.")],
)


@handoff.command(
    "set",
    epilog=examples(
        "cockpit handoff set T-42 PASS 'Tokens are refreshed. Two tests added.' --files src/auth.py"
    ),
)
@click.argument("task")
@click.argument("status", metavar="|".join(handoffs.STATUSES))
@click.argument("summary")
@click.option(
    "--files",
    "files",
    multiple=True,
    metavar="PATHS",
    help="Name the changed files, with commas or by repeating the option.",
)
@click.option(
    "--details",
    "source",
    metavar="FILE|-",
    help="Read the full details from this file, or from standard input.",
)
@AS_JSON
def set_handoff(
    task: str,
    status: str,
    summary: str,
    files: tuple[str, ...],
    source: str | None,
    as_json: bool,
) -> None:
    """Set the handoff of a task.

    The status is PASS, FAIL or BLOCKED. SUMMARY is two or three sentences.
    """
    details = None if source is None else _read_source(source)
    paths = [path.strip() for named in files for path in named.split(",") if path.strip()]

    def step(tx: Tx) -> Handoff:
        by = authorize_writer(tx, "hand a task over")
        return handoffs.set_handoff(tx, task, status.upper(), summary, paths, details, by=by)

    read_store(lambda connection: tasks.load(connection, task))
    handed: Handoff = write_store(step)
    if as_json:
        show_json(handed.brief())
    else:
        show(f"{handed.task_id} · {handed.status}")


def _read_source(source: str) -> str:
    if source == "-":
        return sys.stdin.read()
    try:
        return Path(source).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise WrongUse(f"{source} cannot be read: {error}") from error
