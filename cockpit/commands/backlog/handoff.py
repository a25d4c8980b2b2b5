"""``cockpit handoff``: show, list and set handoffs of tasks."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cockpit.cli_options import AS_JSON, TOKEN, examples
from cockpit.commands.caller_rights import find_caller
from cockpit.commands.open_project import WrongUse, find_project, open_store, read_store
from cockpit.commands.terminal import say, show, show_json, show_list
from cockpit.store.backlog import handoffs, tasks

if TYPE_CHECKING:
    from cockpit.store.backlog.handoffs import Handoff
    from cockpit.store.db.transaction import Tx


@click.group(
    short_help="Manage handoffs of tasks.",
    epilog=examples("cockpit handoff list", "cockpit handoff show T-42 --details"),
)
def handoff() -> None:
    """Show, list and set handoffs: the status, summary and details of a finished task.

    When a story is complete, its details are deleted; when its epic is complete, the rest moves to the
    journal. Handoffs with FAIL or BLOCKED stay complete.
    """


@handoff.command("show", epilog=examples("cockpit handoff show T-42 --details"))
@click.argument("task")
@click.option("--details", is_flag=True, help="Print the full details.")
@AS_JSON
def show_handoff(task: str, details: bool, as_json: bool) -> None:
    """Show the handoff of a task."""
    stored: Handoff = read_store(lambda connection: handoffs.load(connection, task))
    if as_json:
        show_json(stored.body(details=details))
        return
    show(f"{stored.task_id} · {stored.status} · {stored.created_at}")
    show(stored.summary)
    for path in stored.files_changed:
        show(f"  {path}")
    if stored.archived_at:
        say(f"Archived when its epic was complete, {stored.archived_at}.")
    elif stored.compacted_at:
        say(f"The details were deleted when its story was complete, {stored.compacted_at}.")
    elif details:
        show(f"\n{stored.full_details}" if stored.full_details else "\nNo details.")
    elif stored.full_details:
        size = len(stored.full_details)
        say(f"{size:,} characters of details: cockpit handoff show {stored.task_id} --details")


@handoff.command("list", epilog=examples("cockpit handoff list --limit 5"))
@click.option(
    "--limit",
    type=click.IntRange(1, 10_000),
    default=20,
    show_default=True,
    help="List at most this many handoffs.",
)
@AS_JSON
def list_handoffs(limit: int, as_json: bool) -> None:
    """List handoffs, newest first."""
    stored: list[Handoff] = read_store(
        lambda connection: handoffs.select_recent(connection, limit), empty=[]
    )
    show_list(
        as_json,
        [row.body() for row in stored],
        ("TASK", "STATUS", "FILES", "DETAILS", "SUMMARY"),
        [
            (
                row.task_id,
                row.status,
                str(len(row.files_changed)),
                "compacted" if row.compacted_at else "whole" if row.full_details else "none",
                row.summary.splitlines()[0],
            )
            for row in stored
        ],
        "No handoffs yet. `cockpit handoff set` writes one when a task ends.",
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
@TOKEN
@AS_JSON
def set_handoff(
    task: str,
    status: str,
    summary: str,
    files: tuple[str, ...],
    source: str | None,
    token: str,
    as_json: bool,
) -> None:
    """Set the handoff of a task.

    The status is PASS, FAIL or BLOCKED. SUMMARY is two or three sentences.
    """
    details = None if source is None else _read(source)
    paths = [path.strip() for named in files for path in named.split(",") if path.strip()]

    def step(tx: Tx) -> Handoff:
        from cockpit.access.principals import journal_actor
        from cockpit.access.token_scopes import WORK_WRITE

        caller = find_caller(tx, token)
        caller.require(WORK_WRITE, "hand a task over")
        by = journal_actor(caller)
        return handoffs.set_handoff(tx, task, status.upper(), summary, paths, details, by=by)

    read_store(lambda connection: tasks.load(connection, task))
    with open_store(find_project()) as store:
        handed = store.write_now(step)
    if as_json:
        show_json(handed.brief())
    else:
        show(f"{handed.task_id} · {handed.status}")


def _read(source: str) -> str:
    if source == "-":
        return sys.stdin.read()
    try:
        return Path(source).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise WrongUse(f"{source} cannot be read: {error}") from error
