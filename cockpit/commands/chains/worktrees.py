"""``cockpit worktrees``: list the worktrees of tasks, chains and agents, and remove merged ones."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from msgspec import Struct

from cockpit.cli_options import AS_JSON, examples
from cockpit.commands.collection import Collection
from cockpit.commands.open_project import find_project, open_store, read_store
from cockpit.commands.terminal import say, show, show_json
from cockpit.core.errors import NotFound
from cockpit.store.chains import worktrees as stored
from cockpit.store.chains.worktrees import Worktree
from cockpit.store.sessions import proposals
from cockpit.tasks.agent_changes.propose_change import TYPES

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


def _find(name: str) -> WorktreeRow:
    for row in _read(everything=True):
        if row.tree.name == name:
            return row
    raise NotFound(f"There is no worktree {name}.")


worktrees = Collection(
    "worktrees",
    short_help="List and remove worktrees of tasks.",
    help="""List and remove the git worktrees that cockpit made, the oldest first.

    Each task in progress and each chain has one, and so has an agent that does not work in your checkout.
    They are in the project's state folder. Your own checkout is never one of them.
    """,
    examples=("cockpit worktrees --all", "cockpit worktrees T-42", "cockpit worktrees clean"),
    row="NAME",
    columns={
        "NAME": lambda row: row.tree.name,
        "STATUS": lambda row: row.tree.status,
        "WAITS": lambda row: row.proposal_id or "–",
        "BRANCH": lambda row: row.tree.branch,
        "CHANGED": lambda row: row.tree.updated_at[:16].replace("T", " "),
        # The worktree of merged work is gone, while its row and its branch may still exist.
        "PATH": lambda row: row.tree.path if Path(row.tree.path).is_dir() else "–",
    },
    read=_read,
    find=_find,
    none=_NONE,
    body=lambda row: row.body(),
    filters=[click.option("--all", "everything", is_flag=True, help="List removed worktrees too.")],
)


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
