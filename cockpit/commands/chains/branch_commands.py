"""``diff``, ``take`` and ``drop`` of ``cockpit chain``: branches of chains and tasks.

Specified in ``docs/reference/chains.md``, the branch of a chain.
"""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from cockpit.cli_options import AS_JSON, examples
from cockpit.commands.open_project import (
    find_project,
    load_project_settings,
    open_project_runtime,
    open_store,
)
from cockpit.commands.terminal import show, show_json
from cockpit.store.sessions.proposals import Proposal

if TYPE_CHECKING:
    from cockpit.tasks.agent_changes.branch_change import BranchChange

ReadName = Callable[[str | None], str]
"""Returns the id of the chain or task that the user named."""


_BRANCH = click.argument("branch", metavar="[CHAIN|TASK]", required=False)


def build_commands(read_name: ReadName) -> tuple[click.Command, ...]:
    """Return the three commands of the group ``chain``."""

    @click.command("diff", epilog=examples("cockpit chain diff", "cockpit chain diff T-42 --stat"))
    @_BRANCH
    @click.option("--stat", is_flag=True, help="Print the names of the files only.")
    @AS_JSON
    def diff(branch: str | None, stat: bool, as_json: bool) -> None:
        """Show what a branch changes, and its commits.

        It compares with the branch that it would be merged into, and says which files conflict.
        """
        shown = _read(read_name(branch))
        if as_json:
            show_json(_document(shown))
            return
        for line in _describe(shown, stat=stat):
            show(line)

    @click.command("take", epilog=examples("cockpit chain take", "cockpit chain take T-42"))
    @_BRANCH
    @AS_JSON
    def take(branch: str | None, as_json: bool) -> None:
        """Propose to merge a branch.

        Nothing is merged before you approve the proposal, on the screen or with `cockpit proposals approve`.
        """
        _propose(read_name(branch), drop=False, as_json=as_json)

    @click.command("drop", epilog=examples("cockpit chain drop ch-3", "cockpit chain drop T-42"))
    @_BRANCH
    @AS_JSON
    def drop(branch: str | None, as_json: bool) -> None:
        """Propose to remove a branch and its worktree.

        Its work is kept as a reference below refs/cockpit/dropped.
        """
        _propose(read_name(branch), drop=True, as_json=as_json)

    return diff, take, drop


def _read(name: str) -> BranchChange:
    from cockpit.tasks.agent_changes.branch_change import read_branch

    place = find_project()
    with open_store(place) as store:
        return asyncio.run(read_branch(store, place, name))


def _document(shown: BranchChange) -> dict[str, Any]:
    change, tree = shown.change, shown.branch.tree
    return {
        "name": shown.branch.name,
        "branch": tree.branch if tree is not None else None,
        "into": shown.branch.into.removeprefix("refs/heads/") or None,
        "in_progress": shown.branch.runs,
        "commits": [
            {"sha": c.sha, "at": c.at, "author": c.author, "subject": c.subject}
            for c in shown.commits
        ],
        "added": change.added if change is not None else 0,
        "removed": change.removed if change is not None else 0,
        "files": list(change.paths) if change is not None else [],
        "uncommitted": list(change.uncommitted) if change is not None else [],
        "conflicts": list(change.conflicts) if change is not None else [],
        "notes": list(change.notes) if change is not None else [],
    }


def _describe(shown: BranchChange, *, stat: bool) -> Iterator[str]:
    change, tree = shown.change, shown.branch.tree
    into = shown.branch.into.removeprefix("refs/heads/")
    if change is None:
        yield f"{shown.branch.name}: nothing differs."
        return
    yield f"{tree.branch if tree else 'your checkout'}: {change.size}" + (
        f", into {into}" if into else ""
    )
    for commit in shown.commits:
        yield f"  {commit.sha} {commit.subject} · {commit.author}"
    for note in change.notes:
        yield f"! {note}"
    for path in change.conflicts:
        yield f"✗ {path} conflicts with {into}"
    if stat:
        yield from (f"  {path}" for path in change.paths)
        return
    for diff in change.diffs:
        before, after = (diff.before or "").splitlines(), (diff.after or "").splitlines()
        yield ""
        yield from difflib.unified_diff(
            before, after, f"a/{diff.path}", f"b/{diff.path}", lineterm=""
        )


def _propose(name: str, *, drop: bool, as_json: bool) -> None:
    proposal = asyncio.run(_make_proposal(name, drop))
    if as_json:
        show_json(
            {"proposal_id": proposal.proposal_id, "title": proposal.title, "risk": proposal.risk}
        )
        return
    show(f"{proposal.proposal_id}: {proposal.title}")
    show(f"Look at it with `cockpit proposals {proposal.proposal_id}`.")
    show(f"Approve it on the screen, or with `cockpit proposals approve {proposal.proposal_id}`.")


async def _make_proposal(name: str, drop: bool) -> Proposal:
    from cockpit.tasks.agent_changes.propose_change import select_pending

    place = find_project()
    settings = load_project_settings(place)
    async with open_project_runtime(place, settings.runtime) as runtime:
        session_id = await runtime.propose_branch(name, drop=drop)
        return (await runtime.store.read(lambda c: select_pending(c, session_id)))[-1]
