"""A proposal as one row of a list, for people and for programs."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from cockpit.core.clock import parse_time
from cockpit.loop.permissions.waiting_permission import KIND as PERMISSION
from cockpit.store.sessions.proposals import Proposal, shown_reason


def describe_record(proposal: Proposal) -> dict[str, Any]:
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
