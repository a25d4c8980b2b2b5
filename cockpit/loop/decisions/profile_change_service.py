"""Profile changes as a service: proposed, judged, decided once, applied.

What the agent's tool, the command line and other faces call alike, each inside one write transaction:
a crash leaves a change either undecided or decided and applied. Deciding is idempotent by the
proposal's id; who calls is derived, never read from a payload. Source: RFC-003 §10.3, §10.4, §11, §15.4.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from cockpit.access.principals import Caller
from cockpit.access.token_scopes import ADMIN, APPROVE, PROPOSE
from cockpit.core.secrets import mask, mask_value
from cockpit.core.text import pluralize
from cockpit.loop.decisions.profile_change_results import (
    GUARD,
    Origin,
    Outcome,
    actor_of,
    decided_already,
    kept_refusals,
    origin_of,
    record,
    refused,
    rejected,
)
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.orient.profile_changes.apply_change import applied, weights_only
from cockpit.orient.profile_changes.change_limits import envelope_of
from cockpit.orient.profile_changes.change_preview import proposal_body, title
from cockpit.orient.profile_changes.change_record import ChangeRefused, ProfileChange
from cockpit.orient.profile_changes.guard import CODES, AdminPolicy, Refusal, admin_policy, judge
from cockpit.orient.profile_changes.parse_change import parse_change
from cockpit.store.context import profile_changes, profiles
from cockpit.store.context.profile_changes import ChangeProposal
from cockpit.store.context.profile_model import Profile
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.profiles import (
    ProfileApplied,
    ProfileApproved,
    ProfileExpired,
    ProfileProposed,
)
from cockpit.store.sessions import proposals
from cockpit.store.sessions.proposals import Proposal

OUTSIDE = Origin()
"""Proposed outside any session."""


def admin_of(settings: RuntimeSettings) -> AdminPolicy:
    """The administrator's bounds that these settings state."""
    rules = settings.adaptation
    return admin_policy(
        settings.token_budget, horizon_max=rules.max_waves, floor_percent=rules.floor_percent
    )


def propose(
    tx: Tx,
    settings: RuntimeSettings,
    payload: str | bytes | ProfileChange,
    caller: Caller,
    *,
    profile_id: str,
    proposal_id: str,
    origin: Origin = OUTSIDE,
    deadline_s: float | None = None,
) -> Outcome:
    """Propose a change of the current version of ``profile_id``.

    Judged at once: what the guard refuses is kept as rejected with its code, and changes nothing;
    the rest waits for a person, or passes by policy. A ``proposal_id`` that is known is answered as
    it stands. Raises ``NotAllowed`` for a caller who may not propose.
    """
    caller.require(PROPOSE, "propose a profile change")
    known = profile_changes.find(tx.connection, proposal_id)
    if known is not None:
        return Outcome(proposal_id, known.status, known.applied_version, kept_refusals(known))
    base = profiles.load_current(tx.connection, profile_id)
    change, refusals = _judged(tx, settings, payload, base, caller)
    kept = profile_changes.propose(
        tx,
        proposal_id=proposal_id,
        requested_by=caller.namespace,
        profile_id=profile_id,
        base_version=base.version if change is None else change.base_version,
        effective_waves=0 if change is None else change.effective_waves,
        payload="{}" if change is None else change.text,
    )
    if change is None or refusals:
        return refused(tx, kept, refusals, origin)
    after = applied(change, base)
    shown = proposals.create(
        tx,
        proposal_id=proposal_id,
        kind="profile",
        session_id=origin.session_id,
        wave_id=origin.wave_id,
        title=title(change),
        body=proposal_body(change, base, after),
        risk="low" if weights_only(base, after) else "medium",
        task_id=origin.task_id,
        deadline_s=deadline_s,
        actor=actor_of(caller),
    )
    record(
        tx,
        ProfileProposed,
        kept,
        origin,
        actor=actor_of(caller),
        reason=change.reason,
        payload=change.body(),
    )
    by = _policy(settings, caller, origin, weights_only(base, after))
    if by:
        return _approved(tx, settings, kept, shown, by=by, namespace=by)
    return Outcome(proposal_id, "pending")


def decide(
    tx: Tx,
    settings: RuntimeSettings,
    proposal_id: str,
    verdict: Literal["approved", "rejected", "discussed"],
    caller: Caller,
    *,
    shown_digest: str | None = None,
    reason: str = "",
) -> Outcome:
    """Decide a pending change, once; approved, it is the current version when this returns.

    It is judged again as things stand: what does no longer hold is rejected by the guard (see
    ``refusals``), what is late expires. Raises ``NotAllowed``, ``NotFound``, ``AlreadyDecided`` and
    ``Stale``; then nothing changed.
    """
    caller.require(APPROVE, "decide on profile changes")
    late = {outcome.proposal_id: outcome for outcome in settle(tx, settings)}
    if proposal_id in late:
        return late[proposal_id]
    kept = profile_changes.load(tx.connection, proposal_id)
    if kept.status != "pending":
        raise decided_already(kept)
    shown = proposals.load(tx.connection, proposal_id)
    by = actor_of(caller)
    if verdict == "approved":
        if kept.effective_waves == 0:
            caller.require(ADMIN, "change a profile for good")
        return _approved(
            tx,
            settings,
            kept,
            shown,
            by=by,
            namespace=caller.namespace,
            digest=shown_digest,
            reason=reason,
        )
    proposals.decide(tx, proposal_id, verdict, by=by, shown_digest=shown_digest, reason=reason)
    return rejected(tx, kept, origin_of(shown), code=verdict, words=reason, by=by)


def settle(tx: Tx, settings: RuntimeSettings) -> list[Outcome]:
    """Carry over what was decided elsewhere, and expire what nobody decided in time.

    Idempotent; called before every wave and before every look at what waits.
    """
    found = []
    for proposal_id, status in profile_changes.select_unapplied(tx.connection, tx.now()):
        kept = profile_changes.load(tx.connection, proposal_id)
        shown = proposals.load(tx.connection, proposal_id)
        by = shown.decided_by or ""
        if status == "expired":
            if shown.status == "pending":
                proposals.decide(tx, proposal_id, "expired", by="deadline")
            profile_changes.decide(tx, proposal_id, "expired")
            record(tx, ProfileExpired, kept, origin_of(shown), result="refused")
            found.append(Outcome(proposal_id, "expired"))
        elif status == "approved":
            found.append(_approved(tx, settings, kept, shown, by=by, namespace=by))
        else:
            why = shown.reason
            found.append(rejected(tx, kept, origin_of(shown), code=status, words=why, by=by))
    return found


def _judged(
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
        return None, (Refusal("malformed", "It holds what looks like a secret."),)
    return change, _verdict(tx, settings, change, base, caller.namespace)


def _verdict(
    tx: Tx, settings: RuntimeSettings, change: ProfileChange, base: Profile, namespace: str
) -> tuple[Refusal, ...]:
    found = [*judge(change, base, admin_of(settings), envelope_of(namespace), namespace)]
    running = profile_changes.find_running(tx.connection, base.profile_id)
    if running is not None:
        found.append(
            Refusal(
                "adaptation_running",
                f"Version {running.version} of {base.profile_id} holds for "
                f"{pluralize(running.waves_left, 'more wave')}. One change runs at a time: "
                "wait for its end, or roll it back.",
            )
        )
    return tuple(sorted(found, key=lambda refusal: CODES.index(refusal.code)))


def _policy(settings: RuntimeSettings, caller: Caller, origin: Origin, weights: bool) -> str:
    """In whose name a change passes without a person; '' leaves it to one."""
    if caller.kind != "agent":
        return ""
    if origin.policy == "all":
        return "policy:all"
    return "policy:weights" if weights and settings.adaptation.auto == "weights" else ""


def _approved(
    tx: Tx,
    settings: RuntimeSettings,
    kept: ChangeProposal,
    shown: Proposal,
    *,
    by: str,
    namespace: str,
    digest: str | None = None,
    reason: str = "",
) -> Outcome:
    """Judge once more, then decide and apply, or let the guard reject."""
    origin = origin_of(shown)
    base = profiles.load_current(tx.connection, kept.profile_id)
    change = parse_change(kept.payload, imported=True)
    refusals = _verdict(tx, settings, change, base, kept.requested_by)
    if refusals:
        if shown.status == "pending":
            words = f"{refusals[0].code}: {refusals[0].message}"
            proposals.decide(
                tx, kept.proposal_id, "rejected", by=GUARD, shown_digest=digest, reason=words
            )
        return refused(tx, kept, refusals, origin)
    if shown.status == "pending":
        proposals.decide(
            tx, kept.proposal_id, "approved", by=by, shown_digest=digest, reason=reason
        )
    after = replace(applied(change, base), updated_by=namespace)
    version = profiles.insert_version(tx, after).version
    profile_changes.link_base(tx, kept.profile_id, version, base.version)
    done = profile_changes.decide(
        tx, kept.proposal_id, "approved", by=namespace, applied_version=version
    )
    if change.effective_waves:
        profile_changes.start(tx, done, version)
    record(tx, ProfileApproved, kept, origin, actor=by, approved_by=namespace)
    record(
        tx,
        ProfileApplied,
        kept,
        origin,
        actor=by,
        profile_version=version,
        version=version,
    )
    return Outcome(kept.proposal_id, "approved", version)
