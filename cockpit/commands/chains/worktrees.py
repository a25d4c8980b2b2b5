"""``cockpit worktrees``: list the worktrees of tasks, chains and agents, and remove merged ones."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import click

from cockpit.cli_options import AS_JSON, examples
from cockpit.commands.open_project import find_project, open_store, read_store
from cockpit.commands.terminal import say, show, show_json, show_list
from cockpit.store.chains import worktrees as stored
from cockpit.store.chains.worktrees import Worktree
from cockpit.store.sessions import proposals
from cockpit.tasks.agent_changes.change_payload import TYPES

_NONE = "No worktrees yet. `cockpit work` makes one for each task."


@click.group(
    short_help="List and remove worktrees of tasks.",
    epilog=examples("cockpit worktrees list", "cockpit worktrees clean"),
)
def worktrees() -> None:
    """List and remove the git worktrees that cockpit made.

    Each task in progress and each chain has one, and so has an agent that does not work in your checkout.
    They are in the project's state folder. Your own checkout is never one of them.
    """


@worktrees.command("list", epilog=examples("cockpit worktrees list --all"))
@click.option("--all", "everything", is_flag=True, help="List removed worktrees too.")
@AS_JSON
def list_worktrees(everything: bool, as_json: bool) -> None:
    """List worktrees, oldest first.

    Where what an agent did in one waits for your decision, its proposal is listed too.
    """
    rows: list[Worktree] = read_store(
        lambda connection: stored.select(connection, removed=everything), empty=[]
    )
    waiting: dict[str, str] = read_store(_select_waiting, empty={})
    show_list(
        as_json,
        [
            {
                **worktree.body(),
                "proposal_id": waiting.get(worktree.name),
                "updated_at": worktree.updated_at,
            }
            for worktree in rows
        ],
        ("NAME", "STATUS", *(("WAITS",) if waiting else ()), "BRANCH", "CHANGED", "PATH"),
        [
            (
                worktree.name,
                worktree.status,
                *((waiting.get(worktree.name, "–"),) if waiting else ()),
                worktree.branch,
                worktree.updated_at[:16].replace("T", " "),
                # The worktree of merged work is gone, while its row and its branch may still exist.
                worktree.path if Path(worktree.path).is_dir() else "–",
            )
            for worktree in rows
        ],
        _NONE,
    )


def _select_waiting(connection: sqlite3.Connection) -> dict[str, str]:
    """Read the proposals that wait over an agent's worktree, by the worktree's name."""
    return {
        str(proposal.body["payload"]["worktree"]): proposal.proposal_id
        for proposal in proposals.select_pending(connection)
        if proposal.body.get("type") in TYPES
    }


@worktrees.command(
    "clean", epilog=examples("cockpit worktrees clean", "cockpit worktrees clean --all")
)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Remove the worktrees of blocked tasks and of chains too, even with uncommitted changes.",
)
@AS_JSON
@click.pass_context
def clean_worktrees(ctx: click.Context, /, everything: bool, as_json: bool) -> None:
    """Remove worktrees whose work is merged.

    It removes their branches too, and prints what it keeps and why. A branch with commits that are not
    merged anywhere always stays, and so do the worktrees of tasks in progress and of running chains.
    """
    from cockpit.tasks import worktree as task_worktree

    place = find_project()
    with open_store(place) as store:
        result = asyncio.run(task_worktree.clean_worktrees(store, place, everything=everything))
    if as_json:
        kept_records = [{"name": name, "why": why} for name, why in result.kept]
        show_json({"removed": list(result.removed), "kept": kept_records})
        return
    for name in result.removed:
        show(f"removed {name}")
    for name, why in result.kept:
        show(f"kept {name}: {why}")
    if not result.removed and not result.kept:
        say(_NONE)
