"""``cockpit worktrees``: where tasks are worked on, and removing what is no longer needed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from cockpit.commands.open_project import find_project, open_store, read_store
from cockpit.commands.terminal import say, show, show_json, show_list
from cockpit.store.chains import worktrees as rows
from cockpit.store.chains.worktrees import Worktree


@click.group(short_help="Where tasks are worked on.")
def worktrees() -> None:
    """The working trees that cockpit made: one for each task under way, one for each chain.

    They stand in .cockpit/state/worktrees; your own checkout is never one of them.
    """


@worktrees.command("list")
@click.option("--all", "everything", is_flag=True, help="Removed ones as well.")
@click.option("--json", "as_json", is_flag=True, help="A JSON list.")
def list_worktrees(everything: bool, as_json: bool) -> None:
    """List working trees, the oldest first."""
    found: list[Worktree] = read_store(lambda seen: rows.select(seen, removed=everything), empty=[])
    show_list(
        as_json,
        [{**tree.body(), "updated_at": tree.updated_at} for tree in found],
        ("NAME", "STATUS", "BRANCH", "CHANGED", "PATH"),
        [
            (
                tree.name,
                tree.status,
                tree.branch,
                tree.updated_at[:16].replace("T", " "),
                _where(tree),
            )
            for tree in found
        ],
        "There is no working tree.",
    )


@worktrees.command("clean")
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Trees of blocked tasks and of chains as well, even with uncommitted work.",
)
@click.option("--json", "as_json", is_flag=True, help="As JSON: what was removed, what was kept.")
@click.pass_context
def clean_worktrees(ctx: click.Context, /, everything: bool, as_json: bool) -> None:
    """Remove working trees and branches whose work is merged; says what it keeps, and why.

    A branch whose commits are merged nowhere stays in any case, and a task in progress and a
    chain that runs keep their trees.
    """
    from cockpit.tasks.worktree import clean_worktrees

    place = find_project()
    with open_store(place) as store:
        done = asyncio.run(clean_worktrees(store, place, everything=everything))
    if as_json:
        kept = [{"name": name, "why": why} for name, why in done.kept]
        show_json({"removed": list(done.removed), "kept": kept})
        return
    for name in done.removed:
        show(f"removed {name}")
    for name, why in done.kept:
        show(f"kept {name}: {why}")
    if not done.removed and not done.kept:
        say("There is no working tree.")


def _where(tree: Worktree) -> str:
    """Where it stands; the tree of merged work is gone, and its branch is left."""
    return tree.path if Path(tree.path).is_dir() else "–"
