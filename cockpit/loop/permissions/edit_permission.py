"""Changing what an agent asks for before it is approved: the user's text replaces part of its input.

The changed input is judged again, by the deny rules and for its risk, and shown as a revision that the user
decides over. See ``docs/reference/agents.md``, permissions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from cockpit.access.principals import Caller
from cockpit.core.clock import parse_time
from cockpit.core.errors import Stale
from cockpit.loop.decisions.decide_proposal import FindCaller, decide_proposal, find_decider
from cockpit.loop.decisions.revision_changes import list_changes
from cockpit.loop.permissions.changed_input import InputNotChanged, change_input, editable_text
from cockpit.loop.permissions.permission_body import (
    AgentPlace,
    PermissionProposal,
    describe_request,
)
from cockpit.loop.permissions.read_tool_request import read_claude_tool
from cockpit.loop.permissions.tool_request import PermissionOption
from cockpit.loop.permissions.wait_for_answer import name_proposal
from cockpit.loop.permissions.waiting_permission import KIND, is_abandoned
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import proposals
from cockpit.store.sessions.proposals import EDITED, Proposal


async def edit_permission(
    store: Store,
    settings: RuntimeSettings,
    proposal: Proposal,
    shown_digest: str,
    text: str,
    find_editor: FindCaller | None = None,
) -> Proposal:
    """Replace a pending permission by the revision that the user's ``text`` makes of it.

    Raises :class:`InputNotChanged`, ``Stale`` if its agent no longer waits, and the errors of
    :func:`~cockpit.loop.decisions.decide_proposal.decide_proposal`; then nothing changed.
    """
    if is_abandoned(proposal):
        raise Stale(f"No agent waits for {proposal.proposal_id} any more. Nothing was changed.")
    described = await asyncio.to_thread(_describe_change, proposal, text)

    def write(tx: Tx) -> Proposal:
        decider = find_editor(tx) if find_editor else find_decider(tx, settings)
        return revise_permission(
            tx,
            settings,
            proposal,
            decider,
            shown_digest,
            title=described.title,
            body=described.body,
            risk=described.judged.risk,
        )

    return await store.write(write)


def revise_permission(
    tx: Tx,
    settings: RuntimeSettings,
    proposal: Proposal,
    decider: Caller,
    shown_digest: str,
    *,
    title: str,
    body: Mapping[str, Any],
    risk: str,
) -> Proposal:
    """Put a pending revision in the place of a permission, by what ``decider`` changed of it.

    What is left of the agent's patience is that of the revision. Raises the errors of
    :func:`~cockpit.loop.decisions.decide_proposal.decide_proposal`.
    """
    decide_proposal(
        *(tx, settings, proposal.proposal_id, "discussed", decider),
        shown_digest=shown_digest,
        reason=EDITED,
    )
    left = None
    if proposal.expires_at is not None:
        left = max(timedelta(), parse_time(proposal.expires_at) - tx.clock.now())
    revision_id = name_proposal(tx)
    return proposals.create(
        tx,
        proposal_id=revision_id,
        kind=KIND,
        session_id=proposal.session_id,
        wave_id=revision_id,
        title=title,
        body=body,
        risk=risk,
        revises=proposal.proposal_id,
        task_id=proposal.task_id,
        deadline_s=None if left is None else left.total_seconds(),
        actor="person",
    )


def _describe_change(proposal: Proposal, text: str) -> PermissionProposal:
    """Return the revision that ``text`` makes of ``proposal``. Raises :class:`InputNotChanged`."""
    body = proposal.body
    editable_text(body)
    changed = change_input(body, text)
    request = read_claude_tool(
        str(body["tool"]),
        changed,
        agent=str(body["agent"]),
        transport=str(body["transport"]),
        call_id=str(body["call_id"]),
        cwd=str(body["cwd"]),
        why=str(body["why"]),
        # Only their names are stored: they are shown, and the process that waits chooses among its own.
        options=tuple(PermissionOption("", str(name), "allow_once") for name in body["options"]),
    )
    request = replace(request, confined=body.get("confined") is True)
    place = AgentPlace(Path(str(body["worktree"])), str(body["project"]), str(body["branch"]))
    described = describe_request(request, place, waiter=str(body["waiter"]))
    if described.judged.denied:
        raise InputNotChanged(f"{described.judged.denied} Nothing was changed.")
    changes = list_changes(proposal, described.body, was_edited=True)
    return replace(described, body={**described.body, "changes": changes, "edited": True})
