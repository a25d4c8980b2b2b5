"""Answering what an external agent asks its user: the answers are a revision, shown and decided at once.

See ``docs/reference/agents.md``, questions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from cockpit.core.clock import parse_time
from cockpit.core.errors import IllegalTransition, Stale
from cockpit.loop.decisions.decide_proposal import FindCaller, decide_proposal, find_decider
from cockpit.loop.permissions.question_form import (
    Answer,
    check_answers,
    describe_answers,
    record_answers,
)
from cockpit.loop.permissions.waiting_permission import KIND, is_abandoned
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import proposals
from cockpit.store.sessions.proposals import EDITED, Proposal


async def answer_questions(
    store: Store,
    settings: RuntimeSettings,
    proposal: Proposal,
    shown_digest: str,
    answers: Sequence[Answer],
    find_editor: FindCaller | None = None,
) -> Proposal:
    """Give the user's answers to a pending question; returns the revision that was approved with them.

    Raises ``AnswerInvalid``, ``Stale`` if its agent no longer waits, ``IllegalTransition`` for a proposal
    that takes no answers, and the errors of
    :func:`~cockpit.loop.decisions.decide_proposal.decide_proposal`; then nothing changed.
    """
    body = proposal.body
    if not body.get("questions") or not body.get("form"):
        raise IllegalTransition(
            f"{proposal.proposal_id} takes no answers from here. Approve it, or reject it with your words."
        )
    if is_abandoned(proposal):
        raise Stale(f"No agent waits for {proposal.proposal_id} any more. Nothing was answered.")
    check_answers(body["questions"], answers)
    revised = _revise(body, answers)

    def write(tx: Tx) -> Proposal:
        decider = find_editor(tx) if find_editor else find_decider(tx, settings)
        decide_proposal(
            tx,
            settings,
            proposal.proposal_id,
            "discussed",
            decider,
            shown_digest=shown_digest,
            reason=EDITED,
        )
        left = None
        if proposal.expires_at is not None:
            left = max(timedelta(), parse_time(proposal.expires_at) - tx.clock.now())
        revision_id = tx.ids.new("p")
        while proposals.find(tx.connection, revision_id) is not None:
            revision_id = tx.ids.new("p")
        revision = proposals.create(
            tx,
            proposal_id=revision_id,
            kind=KIND,
            session_id=proposal.session_id,
            wave_id=revision_id,
            title=proposal.title,
            body=revised,
            risk=proposal.risk,
            revises=proposal.proposal_id,
            task_id=proposal.task_id,
            deadline_s=None if left is None else left.total_seconds(),
            actor="person",
        )
        decide_proposal(
            tx, settings, revision_id, "approved", decider, shown_digest=revision.shown_digest
        )
        return proposals.load(tx.connection, revision_id)

    return await store.write(write)


def _revise(body: Mapping[str, Any], answers: Sequence[Answer]) -> dict[str, Any]:
    shown = describe_answers(body["questions"], answers)
    return {
        **body,
        "answers": record_answers(answers),
        "fields": [*([name, text] for name, text in shown), *body["fields"]],
        "changes": ["answered by you"],
    }
