"""Answering what an external agent asks its user: the answers are a revision, shown and decided at once.

See ``docs/reference/agents.md``, questions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cockpit.core.errors import IllegalTransition, Stale
from cockpit.loop.decisions.decide_proposal import FindCaller, decide_proposal, find_decider
from cockpit.loop.permissions.edit_permission import revise_permission
from cockpit.loop.permissions.question_form import (
    Answer,
    check_answers,
    describe_answers,
    record_answers,
)
from cockpit.loop.permissions.waiting_permission import is_abandoned
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.store.db.database import Store
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import proposals
from cockpit.store.sessions.proposals import Proposal


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
        revision = revise_permission(
            tx,
            settings,
            proposal,
            decider,
            shown_digest,
            title=proposal.title,
            body=revised,
            risk=proposal.risk,
        )
        revision_id = revision.proposal_id
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
