"""``cockpit proposals``: see what waits for a decision, and decide it, from any process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import click

from cockpit.commands.open_project import find_project, load_project_settings, read_store
from cockpit.commands.sessions.proposal_text import proposal_text
from cockpit.commands.terminal import say, show, show_json, show_list
from cockpit.core.clock import parse_time
from cockpit.core.errors import Stale
from cockpit.core.project_paths import ProjectPaths
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.sessions import proposals as stored
from cockpit.store.sessions.proposals import Proposal

SHOWN = click.option(
    "--shown",
    metavar="DIGEST",
    help="The digest of what you saw (the first 8 characters do): refused when it is not that.",
)


@click.group(short_help="What waits for a decision.")
def proposals() -> None:
    """Proposals of every session in this project. Each is decided once, by whoever is first."""


@proposals.command("list")
@click.option("--all", "every", is_flag=True, help="Decided ones as well, newest first.")
@click.option("--json", "as_json", is_flag=True, help="A JSON list.")
def list_proposals(every: bool, as_json: bool) -> None:
    """List the proposals that wait, oldest first."""
    read = stored.select_recent if every else stored.select_pending
    found: list[Proposal] = read_store(lambda connection: read(connection), empty=[])
    now = datetime.now(UTC)
    show_list(
        as_json,
        [_record(proposal) for proposal in found],
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
            for proposal in found
        ],
        "Nothing was proposed yet." if every else "Nothing waits for a decision.",
    )


@proposals.command("show")
@click.argument("proposal_id")
@click.option("--json", "as_json", is_flag=True, help="The whole record as JSON.")
def show_proposal(proposal_id: str, as_json: bool) -> None:
    """Show PROPOSAL_ID in full: what would happen, and the digest that stands for it."""
    proposal = read_store(lambda connection: stored.load(connection, proposal_id))
    if as_json:
        show_json({**_record(proposal), "body": dict(proposal.body)})
        return
    show(proposal_text(proposal))
    if proposal.status == "pending":
        shown = proposal.shown_digest[:8]
        say(
            f"\napprove:  cockpit proposals approve {proposal_id} --shown {shown}\n"
            f"discuss:  cockpit proposals discuss {proposal_id} --words '…'\n"
            f"reject:   cockpit proposals reject {proposal_id} --reason '…'"
        )


@proposals.command("approve")
@click.argument("proposal_id")
@click.option(
    "--item",
    "items",
    multiple=True,
    metavar="ITEM",
    help="Narrow a context request to this item; may be given again.",
)
@SHOWN
@click.option("--json", "as_json", is_flag=True, help="The decided record as JSON.")
def approve(proposal_id: str, items: tuple[str, ...], shown: str | None, as_json: bool) -> None:
    """Approve PROPOSAL_ID: what was shown happens. High risk needs --shown."""
    proposal = read_store(lambda connection: stored.load(connection, proposal_id))
    if proposal.risk == "high" and not shown and proposal.status == "pending":
        raise Stale(
            f"{proposal_id} is of high risk. Look at it with `cockpit proposals show {proposal_id}` "
            "and approve it with the --shown that stands there."
        )
    digest = _digest(proposal, shown)

    async def decide(runtime: Any) -> None:
        await runtime.approve(proposal_id, shown_digest=digest, narrowed=list(items) or None)

    _decide(proposal_id, decide, as_json)


@proposals.command("reject")
@click.argument("proposal_id")
@click.option("--reason", default="", metavar="WORDS", help="Why, for the agent.")
@SHOWN
@click.option("--json", "as_json", is_flag=True, help="The decided record as JSON.")
def reject(proposal_id: str, reason: str, shown: str | None, as_json: bool) -> None:
    """Reject PROPOSAL_ID: it does not happen."""
    proposal = read_store(lambda connection: stored.load(connection, proposal_id))
    digest = _digest(proposal, shown)

    async def decide(runtime: Any) -> None:
        await runtime.reject(proposal_id, shown_digest=digest, reason=reason)

    _decide(proposal_id, decide, as_json)


@proposals.command("discuss")
@click.argument("proposal_id")
@click.option("--words", default="", metavar="WORDS", help="What is on your mind, for the agent.")
@SHOWN
@click.option("--json", "as_json", is_flag=True, help="The decided record as JSON.")
def discuss(proposal_id: str, words: str, shown: str | None, as_json: bool) -> None:
    """End this revision of PROPOSAL_ID and talk about it; the agent's next one points back to it."""
    proposal = read_store(lambda connection: stored.load(connection, proposal_id))
    digest = _digest(proposal, shown)

    async def decide(runtime: Any) -> None:
        await runtime.discuss(proposal_id, shown_digest=digest, words=words)

    _decide(proposal_id, decide, as_json)


def _decide(proposal_id: str, decide: Callable[[Any], Awaitable[None]], as_json: bool) -> None:
    place = find_project()
    asyncio.run(_decided(place, load_project_settings(place).runtime, decide))
    proposal = read_store(lambda connection: stored.load(connection, proposal_id))
    if as_json:
        show_json(_record(proposal))
    else:
        say(f"{proposal_id} is {proposal.status}: {proposal.title}")


async def _decided(
    place: ProjectPaths, settings: RuntimeSettings, decide: Callable[[Any], Awaitable[None]]
) -> None:
    from cockpit.loop.runtime import open_runtime

    async with open_runtime(place, settings) as runtime:
        await decide(runtime)


def _digest(proposal: Proposal, shown: str | None) -> str:
    """The digest the decision names: the whole one, when ``shown`` begins it."""
    if shown is None:
        return proposal.shown_digest
    if len(shown) < 8 or not proposal.shown_digest.startswith(shown):
        raise Stale(
            f"{proposal.proposal_id} is not what --shown {shown} stands for; look at it again with "
            f"`cockpit proposals show {proposal.proposal_id}`. Nothing was decided."
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
    """A span as people say it: 40s, 5m, 3h, 2d."""
    for length, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= length:
            return f"{int(seconds // length)}{unit}"
    return f"{max(0, int(seconds))}s"
