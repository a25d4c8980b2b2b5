"""The decision of a profile change: judged again, then applied as a new version, or refused.

:func:`~cockpit.loop.decisions.decide_proposal.decide_proposal` calls :func:`decide_profile_change`; call
that one. A change is decided once, in one transaction; who decides is derived from the caller, never read
from a payload. See ``docs/reference/profile-changes.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from cockpit.access.principals import Caller, journal_actor
from cockpit.access.token_scopes import ADMIN, APPROVE, NotAllowed
from cockpit.core.secrets import mask
from cockpit.core.text import pluralize
from cockpit.loop.decisions.decision_outcome import DecisionOutcome
from cockpit.loop.decisions.fetching_rules import why_not_fetchable
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.orient.profile_changes.apply_change import apply_change
from cockpit.orient.profile_changes.change_limits import limits_for
from cockpit.orient.profile_changes.change_record import ProfileChange
from cockpit.orient.profile_changes.guard import (
    CODES,
    AdminPolicy,
    Refusal,
    check_change,
    create_admin_policy,
)
from cockpit.orient.profile_changes.parse_change import parse_change
from cockpit.store.context import profile_changes, profiles
from cockpit.store.context.profile_changes import ChangeProposal
from cockpit.store.context.profile_model import Profile
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details import profiles as details
from cockpit.store.sessions import proposals


class Origin(Struct, frozen=True):
    """Where a change was proposed: in a wave of a session, or (all empty) outside any."""

    session_id: str = ""
    wave_id: str = ""
    task_id: str | None = None
    policy: str = "ask"


def admin_policy_of(settings: RuntimeSettings) -> AdminPolicy:
    """Return the administrator's limits on profile changes that ``settings`` state."""
    rules = settings.adaptation
    return create_admin_policy(
        settings.token_budget, horizon_max=rules.max_waves, floor_percent=rules.floor_percent
    )


def judge_profile_change(
    tx: Tx, settings: RuntimeSettings, change: ProfileChange, base: Profile, namespace: str
) -> tuple[Refusal, ...]:
    """Return the guard's refusals of ``change``, most severe first; none when it may be applied.

    ``base`` is the version to change, ``namespace`` the principal that asks.
    """
    refusals = [
        *check_change(change, base, admin_policy_of(settings), limits_for(namespace), namespace)
    ]
    refusals += _judge_fetches(change)
    running = profile_changes.find_running(tx.connection, base.profile_id)
    if running is not None:
        refusals.append(
            Refusal(
                "adaptation_running",
                f"Version {running.version} of {base.profile_id} is a temporary change that applies for "
                f"{pluralize(running.waves_left, 'more wave')}. Only one applies at a time: "
                "wait for its end, or roll it back.",
            )
        )
    return tuple(sorted(refusals, key=lambda refusal: CODES.index(refusal.code)))


def _judge_fetches(change: ProfileChange) -> list[Refusal]:
    """Refuse items that the gateway could not read for a rule."""
    return [
        Refusal("malformed", f"Rule {rule.rule_id}: {why}.")
        for rule in change.rules
        if rule.fetch and (why := why_not_fetchable(rule.fetch))
    ]


def decide_profile_change(
    tx: Tx,
    settings: RuntimeSettings,
    proposal_id: str,
    decision: Literal["approved", "rejected", "discussed"],
    decider: Caller | str,
    *,
    shown_digest: str | None = None,
    reason: str = "",
) -> DecisionOutcome:
    """Decide a pending change, once; an approved one is the current version on return.

    The guard judges it again against the current version: what it refuses now is rejected in its name
    (see ``refusals``), and a change after its deadline expires. ``decider`` is a caller or the name of a
    policy.

    Raises ``NotAllowed``, ``NotFound``, ``AlreadyDecided``, ``Altered`` and ``Stale``; then nothing changed.
    """
    if isinstance(decider, Caller):
        decider.require(APPROVE, "decide on profile changes")
    if proposal_id in [each.proposal_id for each in proposals.expire_due(tx)]:
        return DecisionOutcome(proposal_id, "expired")
    row = profile_changes.load(tx.connection, proposal_id)
    by = journal_actor(decider) if isinstance(decider, Caller) else decider
    if row.status == "pending" and decision == "approved":
        if isinstance(decider, Caller):
            _refuse_own(decider, row)
            if row.effective_waves == 0:
                decider.require(ADMIN, "change a profile permanently")
        change = parse_change(row.payload, imported=True)
        base = profiles.load_current(tx.connection, row.profile_id)
        if refusals := judge_profile_change(tx, settings, change, base, row.requested_by):
            return refuse_profile_change(tx, row, refusals, shown_digest)
    decided = proposals.decide(
        tx, proposal_id, decision, by=by, shown_digest=shown_digest, reason=reason
    )
    if decision != "approved":
        _journal_rejection(tx, row, by, (decision,), decided.reason)
        return DecisionOutcome(proposal_id, "rejected")
    namespace = decider.namespace if isinstance(decider, Caller) else decider
    after = replace(apply_change(change, base), updated_by=namespace)
    version = profiles.insert_version(tx, after).version
    profile_changes.link_base(tx, row.profile_id, version, base.version, proposal_id)
    if change.effective_waves:
        profile_changes.start(tx, row, version)
    journal_profile_change(tx, details.ProfileApproved, row, actor=by, approved_by=namespace)
    journal_profile_change(
        tx, details.ProfileApplied, row, actor=by, profile_version=version, version=version
    )
    return DecisionOutcome(proposal_id, "approved", version)


def _refuse_own(decider: Caller, row: ChangeProposal) -> None:
    """Raise ``NotAllowed`` for a service that approves what it proposed itself."""
    if decider.kind != "person" and decider.namespace == row.requested_by:
        raise NotAllowed(
            f"{decider.namespace} proposed {row.proposal_id} itself and may not approve it. The user"
            " approves it, or another token."
        )


def refuse_profile_change(
    tx: Tx, row: ChangeProposal, refusals: Sequence[Refusal], shown_digest: str | None = None
) -> DecisionOutcome:
    """Reject a change in the guard's name, with all of its reasons."""
    message = mask(" ".join(refusal.message for refusal in refusals))
    codes = tuple(dict.fromkeys(refusal.code for refusal in refusals))
    reason = f"{codes[0]}: {message}"
    proposals.decide(
        tx,
        row.proposal_id,
        "rejected",
        by=profile_changes.GUARD,
        shown_digest=shown_digest,
        reason=reason,
    )
    _journal_rejection(tx, row, profile_changes.GUARD, codes, message)
    return DecisionOutcome(row.proposal_id, "rejected", refusals=tuple(refusals))


def stored_refusals(row: ChangeProposal) -> tuple[Refusal, ...]:
    """Return the guard's refusal that a rejected change was stored with, if the guard rejected it."""
    if row.status != "rejected" or row.rejection_code not in CODES:
        return ()
    return (Refusal(row.rejection_code, row.rejection_reason or ""),)


def journal_profile_change(
    tx: Tx,
    event: type[details.ProfileChange],
    row: ChangeProposal,
    *,
    actor: str,
    profile_version: int | None = None,
    result: str = "ok",
    error_code: str = "",
    **detail: Any,
) -> None:
    """Journal an event of a change; its profile version is the base version unless given."""
    proposal = proposals.load(tx.connection, row.proposal_id)
    tx.journal(
        event(**profile_changes.detail(row), **detail),
        actor=actor,
        session_id=proposal.session_id,
        wave_id=proposal.wave_id,
        profile_id=row.profile_id,
        profile_version=row.base_version if profile_version is None else profile_version,
        result=result,
        error_code=error_code,
    )


def _journal_rejection(
    tx: Tx, row: ChangeProposal, by: str, codes: tuple[str, ...], message: str
) -> None:
    journal_profile_change(
        tx,
        details.ProfileRejected,
        row,
        actor=by,
        result="refused",
        error_code=codes[0],
        codes=codes,
        message=message,
    )
