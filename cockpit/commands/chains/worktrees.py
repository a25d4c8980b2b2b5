"""``cockpit chain worktrees``: list the worktrees of tasks, chains and agents, and remove merged ones."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from msgspec import Struct

from cockpit.cli_options import AS_JSON, examples
from cockpit.commands.backlog.call_work_tools import authorize_writer
from cockpit.commands.open_project import find_project, open_store, read_store
from cockpit.commands.terminal import say, show, show_json, show_list
from cockpit.store.chains import worktrees as stored
from cockpit.store.chains.worktrees import TYPES, Worktree
from cockpit.store.sessions import proposals

_NONE = "No worktrees yet. `cockpit work` makes one for each task."


class WorktreeRow(Struct, frozen=True):
    """A worktree, and the proposal over what an agent did in it, where one waits."""

    tree: Worktree
    proposal_id: str | None

    def body(self) -> dict[str, Any]:
        changed = self.tree.updated_at
        return {**self.tree.body(), "proposal_id": self.proposal_id, "updated_at": changed}


def _read(everything: bool) -> Sequence[WorktreeRow]:
    def read(connection: sqlite3.Connection) -> list[WorktreeRow]:
        # The proposals that wait over an agent's worktree, by the worktree's name.
        waiting = {
            str(proposal.body["payload"]["worktree"]): proposal.proposal_id
            for proposal in proposals.select_pending(connection)
            if proposal.body.get("type") in TYPES
        }
        trees = stored.select(connection, removed=everything)
        return [WorktreeRow(tree, waiting.get(tree.name)) for tree in trees]

    return read_store(read, empty=[])


@click.command(epilog=examples("cockpit chain worktrees --all", "cockpit chain worktrees --clean"))
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="List removed ones too; with --clean remove also those of blocked tasks and of chains, even with"
    " uncommitted changes.",
)
@click.option(
    "--clean", is_flag=True, help="Remove those whose work is merged, with their branches."
)
@AS_JSON
def worktrees(everything: bool, clean: bool, as_json: bool) -> None:
    """List the git worktrees that cockpit made.

    Each task in progress and each chain has one, and so has an agent that does not work in your checkout;
    the oldest is listed first. They are in the project's state folder. --clean prints what it keeps and
    why: a branch with commits that are not merged anywhere always stays, and so do the worktrees of tasks in
    progress and of running chains.
    """
    if clean:
        _clean(everything, as_json)
        return
    rows = _read(everything)
    cells = [
        (
            row.tree.name,
            row.tree.status,
            row.proposal_id or "–",
            row.tree.branch,
            row.tree.updated_at[:16].replace("T", " "),
            # The worktree of merged work is gone, while its row and its branch may still exist.
            row.tree.path if Path(row.tree.path).is_dir() else "–",
        )
        for row in rows
    ]
    headings = ("NAME", "STATUS", "WAITS", "BRANCH", "CHANGED", "PATH")
    show_list(as_json, [row.body() for row in rows], headings, cells, _NONE)


def _clean(everything: bool, as_json: bool) -> None:
    from cockpit.tasks import worktree as task_worktree

    place = find_project()
    with open_store(place) as store:
        store.write_now(lambda tx: authorize_writer(tx, "remove worktrees"))
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
