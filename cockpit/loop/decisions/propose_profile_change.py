"""Proposing a profile change: the guard judges it, and a policy or the user decides it.

The agent's tool, the command line and HTTP call this, inside one write transaction: a crash leaves a
change either pending or decided and applied. See ``docs/reference/profile-changes.md``.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from cockpit.access.principals import Caller, journal_actor
from cockpit.access.token_scopes import PROPOSE
from cockpit.core.secrets import mask, mask_value
from cockpit.loop.decisions.decide_proposal import decide_proposal
from cockpit.loop.decisions.decision_outcome import DecisionOutcome
from cockpit.loop.decisions.profile_change_decision import (
    Origin,
    journal_profile_change,
    judge_profile_change,
    refuse_profile_change,
    stored_refusals,
)
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.orient.profile_changes.apply_change import (
    apply_change,
    changes_weights_only,
    widened_fetches,
)
from cockpit.orient.profile_changes.change_preview import change_title, proposal_body
from cockpit.orient.profile_changes.change_record import MAX_TEXT, ChangeRefused, ProfileChange
from cockpit.orient.profile_changes.guard import Refusal
from cockpit.orient.profile_changes.parse_change import parse_change, read_object
from cockpit.store.context import profile_changes, profiles
from cockpit.store.context.profile_model import Profile
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.profiles import ProfileProposed
from cockpit.store.sessions import proposals

NO_SESSION = Origin()
"""The origin of a change that was proposed outside any session."""


def propose_profile_change(
    tx: Tx,
    settings: RuntimeSettings,
    payload: str | bytes | ProfileChange,
    caller: Caller,
    *,
    profile_id: str,
    proposal_id: str,
    origin: Origin = NO_SESSION,
    deadline_s: float | None = None,
    weights_by: str = "",
) -> DecisionOutcome:
    """Propose a change of the current version of ``profile_id``.

    The guard judges it at once. A refused change is stored as rejected with its code and changes
    nothing; any other waits for the user, or a policy approves it. For a ``proposal_id`` that exists,
    returns its status. ``deadline_s`` is in seconds; None means that the proposal never expires.

    ``weights_by`` is the policy that approves it if it touches nothing but weights; '' leaves that to the
    settings. Raises ``NotAllowed`` for a caller who may not propose.
    """
    caller.require(PROPOSE, "propose a profile change")
    existing = profile_changes.find(tx.connection, proposal_id)
    if existing is not None:
        return DecisionOutcome(
            proposal_id, existing.status, existing.applied_version, stored_refusals(existing)
        )
    base = profiles.load_current(tx.connection, profile_id)
    change, refusals = _parse_and_judge(tx, settings, payload, base, caller)
    after = base if change is None or refusals else apply_change(change, base)
    weights = change is not None and not refusals and changes_weights_only(base, after)
    if change is None:
        title, body = "change the profile", _unread_proposal(base, payload)
    else:
        title, body = change_title(change), proposal_body(change, base, after)
    proposals.create(
        tx,
        proposal_id=proposal_id,
        kind="profile",
        session_id=origin.session_id,
        wave_id=origin.wave_id,
        title=title,
        body={**body, "requested_by": caller.namespace},
        risk="low" if weights else "medium",
        task_id=origin.task_id,
        deadline_s=deadline_s,
        actor=journal_actor(caller),
    )
    row = profile_changes.load(tx.connection, proposal_id)
    # What the guard refuses was proposed too: the log has the payload, and the counts add up.
    journal_profile_change(
        tx,
        ProfileProposed,
        row,
        actor=journal_actor(caller),
        reason=str(body["reason"]),
        payload=body["payload"],
    )
    if refusals:
        return refuse_profile_change(tx, row, refusals)
    policy = (weights_by if weights else "") or _approving_policy(settings, caller, origin, weights)
    # A rule that fetches reads without asking from then on: that is for the user alone to allow.
    if policy and not widened_fetches(base, after):
        return decide_proposal(tx, settings, proposal_id, "approved", policy, kind="profile")
    return DecisionOutcome(proposal_id, "pending")


def _parse_and_judge(
    tx: Tx,
    settings: RuntimeSettings,
    payload: str | bytes | ProfileChange,
    base: Profile,
    caller: Caller,
) -> tuple[ProfileChange | None, tuple[Refusal, ...]]:
    try:
        change = payload if isinstance(payload, ProfileChange) else parse_change(payload)
    except ChangeRefused as error:
        return None, (Refusal(error.code, str(error)),)
    change = replace(change, reason=mask(change.reason))
    if mask_value(change.body()) != change.body():
        return None, (Refusal("malformed", "It contains text that looks like a secret."),)
    return change, judge_profile_change(tx, settings, change, base, caller.namespace)


def _unread_proposal(base: Profile, payload: str | bytes | ProfileChange) -> dict[str, Any]:
    """Return the body of a proposal that says nothing that could be read as a change."""
    return {
        "type": "profile",
        "reason": "",
        "profile_id": base.profile_id,
        "base_version": base.version,
        "effective_waves": 0,
        "payload": _unread_body(payload),
    }


def _unread_body(payload: str | bytes | ProfileChange) -> dict[str, Any]:
    """Return what was sent in the place of a change, masked and bounded, for the records."""
    if isinstance(payload, ProfileChange):
        return dict(mask_value(payload.body()))
    text = payload.decode("utf-8", "replace") if isinstance(payload, bytes) else payload
    if len(text) <= MAX_TEXT:
        try:
            return dict(mask_value(read_object(text)))
        except ChangeRefused:
            pass
    return {"text": mask(text)[:MAX_TEXT], "characters": len(text)}


def _approving_policy(
    settings: RuntimeSettings, caller: Caller, origin: Origin, weights: bool
) -> str:
    """Return the policy that approves the change; '' leaves it to the user.

    ``weights`` says that the change touches nothing but weights.
    """
    if caller.kind != "agent":
        return ""
    if origin.policy == "all":
        return "policy:all"
    return "policy:weights" if weights and settings.adaptation.auto == "weights" else ""
