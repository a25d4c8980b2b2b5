"""How a run ended, as a program reads it. Specified in ``docs/reference/library.md``."""

from __future__ import annotations

import sqlite3

from msgspec import Struct

from cockpit.library.approvals import ApprovalRequest, request_of
from cockpit.loop.session_state.read_session_state import read_session_state
from cockpit.loop.views.review_text import find_review
from cockpit.store.sessions import messages, proposals, sessions, waves


class LoopResult(Struct, frozen=True):
    """The end of a session, or where it waits."""

    session_id: str
    task_type: str
    status: str
    """``done``, or why not: ``blocked``, ``needs_answer``, ``limit``, ``stuck``, ``failed``, ``stopped``
    or ``waiting``."""
    summary: str
    """What the agent ended with, or how to go on where it waits; empty where neither is."""
    answer: str
    """The review of a review, else the agent's last message, else the summary. Untrusted text."""
    waves: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost_usd: float | None
    """None where no price is known."""
    modified_files: tuple[str, ...]
    """Paths that approved actions changed, from the project's root."""
    proposal: ApprovalRequest | None = None
    """What waits for a decision, where the status is ``waiting``."""

    @property
    def ok(self) -> bool:
        """Whether the task is done."""
        return self.status == "done"

    def __str__(self) -> str:
        if self.proposal is None or self.answer == self.summary:
            return self.answer
        return f"{self.answer}\n\n{self.summary}"


def read_result(connection: sqlite3.Connection, session_id: str) -> LoopResult:
    """Read how a session stands. Raises ``NotFound``."""
    session = sessions.load(connection, session_id)
    status = session.status
    if status == "completed":
        status = str(session.result.get("status") or "done")
    summary = str(session.result.get("summary", ""))
    all_of_it = proposals.select_for_session(connection, session_id)
    waits = [each for each in all_of_it if status == "waiting" and each.status == "pending"]
    if waits:
        summary = (
            f"Waits for a decision on {waits[0].proposal_id}: {waits[0].title}. Decide it in any cockpit of"
            f" the project or with `cockpit proposals approve {waits[0].proposal_id}`, then go on with"
            f" run('', session={session_id!r}). Or give the loop an approval callback or a policy."
        )
    review = find_review(connection, session_id)
    if review is not None:
        answer = review.text
    else:
        spoken = [
            message.text
            for message in messages.select_for_session(connection, session_id)
            if message.role == "agent" and message.text
        ]
        answer = spoken[-1] if spoken else summary
    return LoopResult(
        session_id,
        session.task_type,
        status,
        summary,
        answer,
        len(waves.select_for_session(connection, session_id)),
        session.input_tokens,
        session.output_tokens,
        session.cached_tokens,
        session.cost_usd,
        tuple(sorted(read_session_state(connection, session_id).modified_files)),
        request_of(waits[0]) if waits else None,
    )
