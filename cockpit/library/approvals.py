"""What a program is asked to approve, and its answer.

A program's answer is recorded as that of ``program``, never as the user's, so no trust is learned from it.
Specified in ``docs/reference/library.md``, approvals.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal

from msgspec import Struct

from cockpit.access.token_scopes import NotAllowed
from cockpit.access.user_presence import require_no_agent
from cockpit.core.errors import AlreadyDecided, Stale
from cockpit.loop.runtime import Runtime
from cockpit.store.sessions.proposals import Proposal

PROGRAM = "program"
"""Who decided, in the journal, where a program's callback did."""


class ApprovalRequest(Struct, frozen=True):
    """A proposal of the agent that waits for a decision."""

    proposal_id: str
    session_id: str
    kind: str
    """``context``, ``action``, ``plan``, ``profile`` or ``permission``."""
    title: str
    risk: str
    """``low``, ``medium`` or ``high``, as cockpit judges it."""
    body: Mapping[str, Any]
    """What would happen, as the screen shows it: items, differences, argv. Untrusted text."""
    digest: str
    """Covers ``body``; the answer counts for this text only."""

    @property
    def items(self) -> tuple[str, ...]:
        """The items that a context request asks to read; empty for other kinds."""
        return tuple(str(item["item"]) for item in self.body.get("items", ()) if "item" in item)


class Answer(Struct, frozen=True):
    """A program's decision about a proposal."""

    decision: Literal["approve", "discuss", "reject"]
    words: str = ""
    """What the agent reads: why not, or what to talk about."""
    items: tuple[str, ...] | None = None
    """Of a context request the items that are approved; None: all."""


APPROVE = Answer("approve")

Callback = Callable[[ApprovalRequest], "Answer | bool | Awaitable[Answer | bool]"]
"""Called for each proposal: ``True`` approves, ``False`` rejects. A plain function runs in a thread."""


def require_program_of_user(activity: str, environment: Mapping[str, str]) -> None:
    """Raise ``NotAllowed`` where an agent started this program: it would approve what it proposes."""
    require_no_agent(activity)
    if environment.get("COCKPIT_TOKEN"):
        raise NotAllowed(
            f"Nothing was done: {activity} is for you alone, and this program holds a token"
            " (COCKPIT_TOKEN is set). Start it without one."
        )


def request_of(proposal: Proposal) -> ApprovalRequest:
    """Return a proposal as a program sees it."""
    return ApprovalRequest(
        proposal.proposal_id,
        proposal.session_id,
        proposal.kind,
        proposal.title,
        proposal.risk,
        proposal.body,
        proposal.shown_digest,
    )


async def ask(callback: Callback, proposal: Proposal) -> Answer:
    """Return the callback's answer. What it raises passes through, and ``TypeError`` for other answers."""
    request = request_of(proposal)
    if asyncio.iscoroutinefunction(callback):
        answer = await callback(request)
    else:
        answer = await asyncio.to_thread(callback, request)
        if asyncio.iscoroutine(answer):
            answer = await answer
    if isinstance(answer, bool):
        return APPROVE if answer else Answer("reject")
    if not isinstance(answer, Answer):
        raise TypeError(
            f"The approval callback returned {type(answer).__name__} for {proposal.proposal_id}; return"
            " True, False or an Answer."
        )
    return answer


async def settle(runtime: Runtime, proposal: Proposal, callback: Callback) -> None:
    """Ask the callback about a proposal that waits, and decide it.

    A proposal that somebody else decided first, or that changed meanwhile, is left to them: its next revision
    comes as a proposal of its own.
    """
    proposal_id = proposal.proposal_id
    answer = await ask(callback, proposal)
    shown = proposal.shown_digest
    try:
        match answer.decision:
            case "approve":
                narrowed = None if answer.items is None else list(answer.items)
                await runtime.approve(
                    proposal_id, shown_digest=shown, narrowed=narrowed, by=PROGRAM
                )
            case "discuss":
                await runtime.discuss(
                    proposal_id, shown_digest=shown, words=answer.words, by=PROGRAM
                )
            case "reject":
                await runtime.reject(
                    proposal_id, shown_digest=shown, reason=answer.words, by=PROGRAM
                )
    except (AlreadyDecided, Stale):
        return
