"""Proposals of every session: those that wait, the oldest first, or all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from cockpit.collections.collection import Collection, Field, View, open_records
from cockpit.core.clock import parse_time
from cockpit.loop.permissions.waiting_permission import KIND as PERMISSION
from cockpit.store.sessions import proposals
from cockpit.store.sessions.proposals import Proposal, shown_reason


def _read(view: View, every: bool) -> Sequence[Proposal]:
    read = proposals.select_recent if every else proposals.select_pending
    return () if view.connection is None else read(view.connection)


def _columns(rows: Sequence[Proposal]) -> Mapping[str, Callable[[Proposal], str]]:
    now = datetime.now(UTC)
    columns: dict[str, Callable[[Proposal], str]] = {
        "PROPOSAL": lambda row: row.proposal_id,
        "KIND": lambda row: row.kind,
        "RISK": lambda row: row.risk,
        "STATUS": proposals.shown_status,
        "AGE": lambda row: format_span((now - parse_time(row.created_at)).total_seconds()),
        "LEFT": lambda row: format_left(row, now),
        "SESSION": lambda row: row.session_id,
    }
    # Who asks and where is a question only where an external agent does.
    if any(find_origin(proposal) for proposal in rows):
        columns["FROM"] = lambda row: " · ".join(filter(None, find_origin(row).values())) or "–"
    return {**columns, "TITLE": lambda row: row.title}


def _say_none(every: bool = False, all_projects: bool = False) -> str:
    if all_projects:  # a filter of the command alone
        return "No proposal waits for a decision in any project."
    return "No proposals yet." if every else "No proposal waits for a decision."


def describe_record(proposal: Proposal) -> dict[str, Any]:
    """Return a proposal of a list as JSON."""
    return {
        "proposal_id": proposal.proposal_id,
        "kind": proposal.kind,
        "status": proposal.status,
        "risk": proposal.risk,
        "title": proposal.title,
        **find_origin(proposal),
        "session_id": proposal.session_id,
        "wave_id": proposal.wave_id,
        "task_id": proposal.task_id,
        "revises": proposal.revises,
        "shown_digest": proposal.shown_digest,
        "narrowed": None if proposal.narrowed is None else list(proposal.narrowed),
        "decided_by": proposal.decided_by,
        "decided_at": proposal.decided_at,
        "reason": shown_reason(proposal),
        "created_at": proposal.created_at,
        "expires_at": proposal.expires_at,
    }


def find_origin(proposal: Proposal) -> dict[str, str]:
    """Return the external agent that asks or whose work it is, its project and branch; else nothing."""
    if proposal.kind != PERMISSION and not proposal.body.get("agent"):
        return {}
    return {name: str(proposal.body.get(name, "")) for name in ("agent", "project", "branch")}


def format_left(proposal: Proposal, now: datetime) -> str:
    """Return how long a proposal waits yet."""
    if proposal.status != "pending" or proposal.expires_at is None:
        return "–"
    left = (parse_time(proposal.expires_at) - now).total_seconds()
    return format_span(left) if left > 0 else "over"


def format_span(seconds: float) -> str:
    """Format a span of seconds: 40s, 5m, 3h, 2d."""
    for length, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= length:
            return f"{int(seconds // length)}{unit}"
    return f"{max(0, int(seconds))}s"


COLLECTION: Collection[Proposal] = Collection(
    name="proposals",
    command="proposals",
    title="Proposals",
    summary="List, show and decide proposals.",
    help="""List, show and decide the proposals of every session in this project.

    Pending ones are listed, the oldest first. With PROPOSAL it prints that one in full, with its digest. A
    proposal is decided once; the first decision counts.
    """,
    examples=(
        "cockpit proposals",
        "cockpit proposals p-1a2b3c",
        "cockpit proposals --all --json",
        "cockpit proposals --all-projects --json",
    ),
    row="PROPOSAL",
    sample="p-1a2b3c",
    columns=_columns,
    read=_read,
    find=lambda view, name: proposals.load(open_records(view), name),
    none=_say_none,
    body=describe_record,
    document=lambda row: {**describe_record(row), "body": dict(row.body)},
    filters=(
        Field("every", "List decided proposals too, newest first.", "--all", "flag", default=False),
    ),
    key="alt+q",
)
