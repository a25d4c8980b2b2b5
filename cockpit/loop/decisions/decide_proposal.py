"""The one decider: every approval, rejection and discussion of a proposal goes through here.

The screen, the command line, HTTP, policies and the demo call :func:`decide_proposal`, whatever the kind
of the proposal: context request, action, plan or profile change. Only expiry by deadline is elsewhere
(:func:`cockpit.store.sessions.proposals.expire_due`). See ``docs/reference/loop.md``, decisions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from cockpit.access import user_presence
from cockpit.access.capability_tokens import TOKEN_VARIABLE, caller
from cockpit.access.principals import Caller
from cockpit.access.token_scopes import PROPOSALS_DECIDE, NotAllowed
from cockpit.loop.decisions.approval_effects import find_approval_effect
from cockpit.loop.decisions.decision_outcome import DecisionOutcome
from cockpit.loop.decisions.profile_change_decision import decide_profile_change
from cockpit.loop.permissions.question_form import AnswerNeeded
from cockpit.loop.permissions.waiting_permission import GONE, KIND, is_abandoned
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.loop.trust.learn_decision import learn_decision
from cockpit.loop.user_message import send_message
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import proposals
from cockpit.store.sessions.proposals import Proposal

Decision = Literal["approved", "rejected", "discussed"]

FindCaller = Callable[[Tx], Caller]
"""Looks up who decides, in the transaction that decides. Raises ``TokenRefused`` and ``NotAllowed``."""


def find_decider(tx: Tx, settings: RuntimeSettings, token: str | None = None) -> Caller:
    """Return the holder of ``token``; None means the environment's token, and '' the user.

    Raises ``TokenRefused``, and ``NotAllowed`` for the user below an agent or without a terminal.
    """
    decider = find_holder(tx, settings, token)
    user_presence.require_user(decider, "deciding a proposal")
    return decider


def find_holder(tx: Tx, settings: RuntimeSettings, token: str | None = None) -> Caller:
    """Return the holder of ``token``, as :func:`find_decider` does, whoever sits there."""
    secret = settings.environment.get(TOKEN_VARIABLE, "") if token is None else token
    return caller(tx.connection, secret, tx.now())


def decide_proposal(
    tx: Tx,
    settings: RuntimeSettings,
    proposal_id: str,
    decision: Decision,
    decider: Caller | str,
    *,
    kind: Literal["profile"] | None = None,
    shown_digest: str | None = None,
    narrowed: Sequence[str] | None = None,
    reason: str = "",
) -> DecisionOutcome:
    """Decide a pending proposal, once, and apply what its approval does.

    ``decider`` is a caller (see :func:`find_decider`) or the name of a policy, such as ``policy:all``.
    The user decides everything; a service with the scope for it decides profile changes, or other kinds;
    agents decide nothing. ``kind`` limits the call to profile changes. ``shown_digest`` is the digest of
    what the decider saw, ``narrowed`` the items that stay of a context request, ``reason`` the text for the
    agent.

    Raises ``NotAllowed``, ``NotFound``, ``AlreadyDecided``, ``Stale``, ``Altered``, and the errors of an
    approval effect; then nothing changed. A profile change that the guard refuses is in the outcome.
    """
    if kind is None:
        proposal = proposals.load(tx.connection, proposal_id)
    if kind == "profile" or proposal.kind == "profile":
        return decide_profile_change(
            tx, settings, proposal_id, decision, decider, shown_digest=shown_digest, reason=reason
        )
    by = name_decider(decider) if isinstance(decider, Caller) else decider
    if decision == "approved" and is_abandoned(proposal):
        proposals.decide(tx, proposal_id, "expired", by="engine", reason=GONE)
        return DecisionOutcome(proposal_id, "expired", reason=GONE)
    if decision == "approved" and proposal.kind == KIND and proposal.body.get("questions"):
        _require_answers(proposal)
    effect = None
    if decision == "approved" or proposal.body.get("type") in settings.approval_effects:
        effect = find_approval_effect(settings.approval_effects, proposal)
    decided = proposals.decide(
        tx,
        proposal_id,
        decision,
        by=by,
        shown_digest=shown_digest,
        narrowed=narrowed,
        reason=reason,
    )
    learn_decision(
        tx, settings.trust, proposal, decision, by, narrowed=decided.narrowed, reason=reason
    )
    if effect is not None and decision == "approved":
        effect.apply(tx, decided, by=by)
    elif effect is not None and decision == "rejected":
        effect.turn_down(tx, decided)
    return DecisionOutcome(proposal_id, decided.status)


def decide_and_tell(
    tx: Tx,
    settings: RuntimeSettings,
    proposal_id: str,
    decision: Decision,
    decider: Caller | str,
    **arguments: Any,
) -> DecisionOutcome:
    """Decide as :func:`decide_proposal` does; the words of a discussion become the session's next message."""
    outcome = decide_proposal(tx, settings, proposal_id, decision, decider, **arguments)
    proposal = proposals.load(tx.connection, proposal_id)
    words = arguments.get("reason", "")
    # The words about a permission are its answer: the agent that waits for it gets them.
    is_message = decision == "discussed" and proposal.kind != KIND
    if is_message and words and proposal.session_id:
        effect = find_approval_effect(settings.approval_effects, proposal)
        if effect is not None:
            words = effect.describe_discussion(proposal, words)
        send_message(tx, proposal.session_id, words)
    return outcome


def name_decider(caller: Caller) -> str:
    """Return the name under which ``caller`` decides: ``person`` for the user, else its namespace.

    A service needs the scope ``proposals.decide``, which the user has given to it. Raises ``NotAllowed``.
    """
    if caller.kind == "person":
        return "person"
    if caller.kind == "agent" or PROPOSALS_DECIDE not in caller.scopes:
        raise NotAllowed(
            f"{caller.namespace} may not decide this: only the user may, or a service to which the user has"
            f" given the scope {PROPOSALS_DECIDE}."
        )
    return caller.namespace


def _require_answers(proposal: Proposal) -> None:
    """Raise ``AnswerNeeded`` for a question without answers: a yes says nothing to it."""
    if proposal.body.get("answers"):
        return
    how = (
        f"Answer it on the screen, or with `cockpit proposals answer {proposal.proposal_id} ANSWER`."
        if proposal.body.get("form")
        else "Answer it in the agent's own terminal, or reject it with your answer as the reason."
    )
    raise AnswerNeeded(f"{proposal.proposal_id} is a question. {how}")
