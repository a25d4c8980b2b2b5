"""``cockpit handoff``: how a task ended, for whoever goes on."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cockpit.cli_options import TOKEN
from cockpit.commands.command_caller import find_caller
from cockpit.commands.open_project import WrongUse, find_project, open_store, read_store
from cockpit.commands.terminal import say, show, show_json, show_list
from cockpit.store.backlog import handoffs, tasks

if TYPE_CHECKING:
    from cockpit.store.backlog.handoffs import Handoff
    from cockpit.store.db.transaction import Tx

AS_JSON = click.option("--json", "as_json", is_flag=True, help="As JSON.")


@click.group(short_help="How a task ended, for whoever goes on.")
def handoff() -> None:
    """Handoffs: a status and a summary for the coordinator, with the details behind them.

    When a story is complete the details go, when its epic is the rest goes into the journal; what
    failed or was blocked stays whole.
    """


@handoff.command("show")
@click.argument("task")
@click.option("--details", is_flag=True, help="Everything that was handed over.")
@AS_JSON
def show_handoff(task: str, details: bool, as_json: bool) -> None:
    """Show how TASK ended."""
    found: Handoff = read_store(lambda connection: handoffs.load(connection, task))
    if as_json:
        show_json(found.body(details=details))
        return
    show(f"{found.task_id} · {found.status} · {found.created_at}")
    show(found.summary)
    for path in found.files_changed:
        show(f"  {path}")
    if found.archived_at:
        say(f"Archived with its epic, {found.archived_at}.")
    elif found.compacted_at:
        say(f"Its details went when its story was complete, {found.compacted_at}.")
    elif details:
        show(f"\n{found.full_details}" if found.full_details else "\nThere are no details.")
    elif found.full_details:
        size = len(found.full_details)
        say(f"{size:,} characters of details: cockpit handoff show {found.task_id} --details")


@handoff.command("list")
@click.option("--limit", type=click.IntRange(1, 10_000), default=20, show_default=True)
@AS_JSON
def list_handoffs(limit: int, as_json: bool) -> None:
    """List handoffs, the newest first."""
    found: list[Handoff] = read_store(
        lambda connection: handoffs.select_recent(connection, limit), empty=[]
    )
    show_list(
        as_json,
        [one.body() for one in found],
        ("TASK", "STATUS", "FILES", "DETAILS", "SUMMARY"),
        [
            (
                one.task_id,
                one.status,
                str(len(one.files_changed)),
                "compacted" if one.compacted_at else "whole" if one.full_details else "none",
                one.summary.splitlines()[0],
            )
            for one in found
        ],
        "Nothing was handed over yet.",
    )


@handoff.command("set")
@click.argument("task")
@click.argument("status", metavar="|".join(handoffs.STATUSES))
@click.argument("summary")
@click.option(
    "--files", "files", multiple=True, metavar="PATHS", help="What was changed; again for more."
)
@click.option("--details", "source", metavar="FILE|-", help="The whole output, from there.")
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
    """Hand TASK over as PASS, FAIL or BLOCKED, with a SUMMARY of two or three sentences."""
    details = None if source is None else _read(source)
    paths = [path.strip() for named in files for path in named.split(",") if path.strip()]

    def step(tx: Tx) -> Handoff:
        from cockpit.access.token_scopes import WORK_WRITE
        from cockpit.loop.decisions.profile_change_results import actor_of

        caller = find_caller(tx, token)
        caller.require(WORK_WRITE, "hand a task over")
        by = actor_of(caller)
        return handoffs.set_handoff(tx, task, status.upper(), summary, paths, details, by=by)

    read_store(lambda connection: tasks.load(connection, task))
    with open_store(find_project()) as store:
        made = store.write_now(step)
    if as_json:
        show_json(made.brief())
    else:
        show(f"{made.task_id} · {made.status}")


def _read(source: str) -> str:
    if source == "-":
        return sys.stdin.read()
    try:
        return Path(source).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise WrongUse(f"{source} cannot be read: {error}") from error
