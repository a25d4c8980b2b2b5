"""``cockpit proposals``: list, show and decide proposals, from any process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import click

from cockpit.cli_options import AS_JSON, SHOWN, examples
from cockpit.commands.open_project import (
    find_project,
    load_project_settings,
    open_project_runtime,
    read_store,
)
from cockpit.commands.sessions.proposal_text import WIDTH, framed, proposal_text
from cockpit.commands.terminal import output_width, say, show, show_json, show_list
from cockpit.core.clock import parse_time
from cockpit.core.errors import Stale
from cockpit.core.project_paths import ProjectPaths
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.sessions import proposals as stored
from cockpit.store.sessions.proposals import Proposal


@click.group(
    short_help="List, show and decide proposals.",
    epilog=examples("cockpit proposals list", "cockpit proposals show p-1a2b3c"),
)
def proposals() -> None:
    """List, show and decide the proposals of every session in this project.

    A proposal is decided once; the first decision counts.
    """


@proposals.command("list", epilog=examples("cockpit proposals list --all --json"))
@click.option("--all", "every", is_flag=True, help="List decided proposals too, newest first.")
@AS_JSON
def list_proposals(every: bool, as_json: bool) -> None:
    """List pending proposals, oldest first."""
    read = stored.select_recent if every else stored.select_pending
    rows: list[Proposal] = read_store(lambda connection: read(connection), empty=[])
    now = datetime.now(UTC)
    show_list(
        as_json,
        [_record(proposal) for proposal in rows],
        ("PROPOSAL", "KIND", "RISK", "STATUS", "AGE", "LEFT", "SESSION", "TITLE"),
        [
            (
                proposal.proposal_id,
                proposal.kind,
                proposal.risk,
                proposal.status,
                _span((now - parse_time(proposal.created_at)).total_seconds()),
                _left(proposal, now),
                proposal.session_id,
                proposal.title,
            )
            for proposal in rows
        ],
        "No proposals yet." if every else "No proposal waits for a decision.",
    )


@proposals.command("show", epilog=examples("cockpit proposals show p-1a2b3c"))
@click.argument("proposal_id")
@AS_JSON
def show_proposal(proposal_id: str, as_json: bool) -> None:
    """Show a proposal in full, with its digest."""
    proposal = read_store(lambda connection: stored.load(connection, proposal_id))
    if as_json:
        show_json({**_record(proposal), "body": dict(proposal.body)})
        return
    show(proposal_text(proposal, width=output_width() or WIDTH))
    if proposal.status == "pending":
        shown = proposal.shown_digest[:8]
        say(
            f"\napprove:  cockpit proposals approve {proposal_id} --shown {shown}\n"
            f"discuss:  cockpit proposals discuss {proposal_id} --words '…'\n"
            f"reject:   cockpit proposals reject {proposal_id} --reason '…'"
        )


@proposals.command(
    "approve",
    epilog=examples(
        "cockpit proposals approve p-1a2b3c --shown 5f0c9d21",
        "cockpit proposals approve p-1a2b3c --item file:src/a.py --item file:src/b.py",
    ),
)
@click.argument("proposal_id")
@click.option(
    "--item",
    "items",
    multiple=True,
    metavar="ITEM",
    help="Narrow a context request to this item. Repeat for more items.",
)
@SHOWN
@AS_JSON
def approve(proposal_id: str, items: tuple[str, ...], shown: str | None, as_json: bool) -> None:
    """Approve a proposal.

    A proposal of high risk needs --shown with its digest.
    """
    proposal = read_store(lambda connection: stored.load(connection, proposal_id))
    if proposal.risk == "high" and not shown and proposal.status == "pending":
        raise Stale(
            f"{proposal_id} has high risk and needs its digest. Run `cockpit proposals show {proposal_id}`"
            " and approve it with the --shown printed there."
        )
    digest = _digest(proposal, shown)

    async def decide(runtime: Any) -> None:
        await runtime.approve(proposal_id, shown_digest=digest, narrowed=list(items) or None)

    _decide(proposal_id, decide, as_json)


@proposals.command(
    "reject", epilog=examples("cockpit proposals reject p-1a2b3c --reason 'Keep the old name.'")
)
@click.argument("proposal_id")
@click.option("--reason", default="", metavar="TEXT", help="Send this reason to the agent.")
@SHOWN
@AS_JSON
def reject(proposal_id: str, reason: str, shown: str | None, as_json: bool) -> None:
    """Reject a proposal."""
    proposal = read_store(lambda connection: stored.load(connection, proposal_id))
    digest = _digest(proposal, shown)

    async def decide(runtime: Any) -> None:
        await runtime.reject(proposal_id, shown_digest=digest, reason=reason)

    _decide(proposal_id, decide, as_json)


@proposals.command(
    "discuss",
    epilog=examples("cockpit proposals discuss p-1a2b3c --words 'Why not a smaller range?'"),
)
@click.argument("proposal_id")
@click.option("--words", default="", metavar="TEXT", help="Send this message to the agent.")
@SHOWN
@AS_JSON
def discuss(proposal_id: str, words: str, shown: str | None, as_json: bool) -> None:
    """Discuss a proposal before deciding it.

    This ends the current revision. The agent's next revision refers back to it.
    """
    proposal = read_store(lambda connection: stored.load(connection, proposal_id))
    digest = _digest(proposal, shown)

    async def decide(runtime: Any) -> None:
        await runtime.discuss(proposal_id, shown_digest=digest, words=words)

    _decide(proposal_id, decide, as_json)


def _decide(proposal_id: str, decide: Callable[[Any], Awaitable[None]], as_json: bool) -> None:
    place = find_project()
    asyncio.run(_decide_in_runtime(place, load_project_settings(place).runtime, decide))
    proposal = read_store(lambda connection: stored.load(connection, proposal_id))
    if as_json:
        show_json(_record(proposal))
    else:
        say("\n".join(framed(f"{proposal_id} is {proposal.status}", proposal.title)))


async def _decide_in_runtime(
    place: ProjectPaths, settings: RuntimeSettings, decide: Callable[[Any], Awaitable[None]]
) -> None:
    async with open_project_runtime(place, settings) as runtime:
        await decide(runtime)


def _digest(proposal: Proposal, shown: str | None) -> str:
    """Return the full digest for the decision; ``shown`` may be its first 8 or more characters."""
    if shown is None:
        return proposal.shown_digest
    if len(shown) < 8 or not proposal.shown_digest.startswith(shown):
        raise Stale(
            f"{proposal.proposal_id} does not have the digest {shown}. Nothing was decided. Look at it"
            f" again with `cockpit proposals show {proposal.proposal_id}`."
        )
    return proposal.shown_digest


def _record(proposal: Proposal) -> dict[str, Any]:
    return {
        "proposal_id": proposal.proposal_id,
        "kind": proposal.kind,
        "status": proposal.status,
        "risk": proposal.risk,
        "title": proposal.title,
        "session_id": proposal.session_id,
        "wave_id": proposal.wave_id,
        "task_id": proposal.task_id,
        "revises": proposal.revises,
        "shown_digest": proposal.shown_digest,
        "narrowed": None if proposal.narrowed is None else list(proposal.narrowed),
        "decided_by": proposal.decided_by,
        "decided_at": proposal.decided_at,
        "reason": proposal.reason,
        "created_at": proposal.created_at,
        "expires_at": proposal.expires_at,
    }


def _left(proposal: Proposal, now: datetime) -> str:
    if proposal.status != "pending" or proposal.expires_at is None:
        return "–"
    left = (parse_time(proposal.expires_at) - now).total_seconds()
    return _span(left) if left > 0 else "over"


def _span(seconds: float) -> str:
    """Format a span of seconds: 40s, 5m, 3h, 2d."""
    for length, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= length:
            return f"{int(seconds // length)}{unit}"
    return f"{max(0, int(seconds))}s"
