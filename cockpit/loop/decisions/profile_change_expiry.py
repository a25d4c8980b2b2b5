"""The expiry of temporary profile changes: counting waves, reverting, promoting, rolling back.

A wave is counted, and an expired change ended, in the transaction that begins the wave: a crash neither
counts a wave twice nor lets a change outlive its expiry. See ``docs/reference/profile-changes.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from cockpit.access.principals import Caller, journal_actor
from cockpit.access.token_scopes import APPROVE
from cockpit.core.errors import IllegalTransition
from cockpit.learn.decision_quality import VersionMeasure
from cockpit.loop.decisions.decision_outcome import ProfileChangeRefused
from cockpit.loop.decisions.profile_change_decision import admin_policy_of
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.orient.profile_changes.apply_change import copy_as_next_version, should_promote
from cockpit.orient.profile_changes.guard import safety_violations
from cockpit.store.context import profile_changes, profiles
from cockpit.store.context.profile_changes import TemporaryChange
from cockpit.store.context.profile_model import Profile
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.profiles import (
    ProfileEnded,
)
from cockpit.store.sessions.waves import Wave

QualityMeasure = Callable[[sqlite3.Connection, str, int], VersionMeasure | None]
"""Returns the decision quality of the waves under (profile id, version); None when none was judged."""

PROMOTED_BY = "policy:promote_if_better"


class PinnedProfile(Struct, frozen=True):
    """The profile version that a wave runs under."""

    profile_id: str
    version: int
    waves_left: int | None
    """How many more waves may begin under a temporary change after this one; None without one."""


def measure_nothing(
    connection: sqlite3.Connection, profile_id: str, version: int
) -> VersionMeasure | None:
    """Return no quality, so that a temporary change is always reverted when it expires."""
    return None


def pin_profile(
    tx: Tx,
    settings: RuntimeSettings,
    profile_id: str,
    measure: QualityMeasure = measure_nothing,
    wave: Wave | None = None,
) -> PinnedProfile:
    """Return the profile version to pin for ``wave``, which begins now, and count the wave.

    Ends a temporary change whose waves have all begun: the next version has the content from before it,
    or, when promoted, its own. The journal row of that names ``wave``.
    """
    running = profile_changes.find_running(tx.connection, profile_id)
    if running is not None and running.waves_left == 0:
        _end_expired(tx, settings, running, measure, wave)
        running = None
    version = profiles.find_current_version(tx.connection, profile_id)
    if running is None:
        return PinnedProfile(profile_id, version, None)
    waves_left = profile_changes.count_wave(tx, running).waves_left
    return PinnedProfile(profile_id, version, waves_left)


def roll_back_profile(
    tx: Tx, settings: RuntimeSettings, profile_id: str, caller: Caller, *, to: int | None = None
) -> Profile:
    """End the running temporary change: the next version has the content from before it, or of ``to``.

    Raises ``NotAllowed``, ``NotFound``, ``IllegalTransition`` when there is nothing to roll back, and
    :class:`~cockpit.loop.decisions.decision_outcome.ProfileChangeRefused` when that content is not safe.
    """
    caller.require(APPROVE, "roll a profile back")
    running = profile_changes.find_running(tx.connection, profile_id)
    current = profiles.load_current(tx.connection, profile_id)
    if running is None and to is None:
        raise IllegalTransition(
            f"{profile_id} has no temporary change to roll back. To return to an earlier version, pass"
            " --to VERSION; `cockpit profile` lists the versions."
        )
    target = running.base_version if running is not None and to is None else to
    content = profiles.load(tx.connection, profile_id, target or current.version)
    if running is None and content.digest == current.digest:
        raise IllegalTransition(
            f"Version {current.version} of {profile_id} is the same as {target}."
        )
    refusals = safety_violations(content, current, admin_policy_of(settings))
    if refusals:
        raise ProfileChangeRefused(refusals)
    if running is not None:
        profile_changes.end(tx, running, "rolled_back")
    return _insert_next_version(
        tx,
        "rolled_back",
        content,
        current,
        updated_by=content.updated_by if to is None else caller.namespace,
        actor=journal_actor(caller),
        ended_version=current.version,
        proposal_id=running.proposal_id if running is not None else "",
    )


def _end_expired(
    tx: Tx,
    settings: RuntimeSettings,
    running: TemporaryChange,
    measure: QualityMeasure,
    wave: Wave | None,
) -> None:
    current = profiles.load(tx.connection, running.profile_id, running.version)
    base = profiles.load(tx.connection, running.profile_id, running.base_version)
    rules = settings.adaptation
    measured = measure(tx.connection, running.profile_id, running.version)
    base_measured = measure(tx.connection, running.profile_id, running.base_version)
    quality = measured.mean if measured else None
    base_quality = base_measured.mean if base_measured else None
    judged_waves = measured.waves if measured else 0
    base_judged_waves = base_measured.waves if base_measured else 0
    # A mean over few waves says more about chance than about the version.
    comparable = min(judged_waves, base_judged_waves) >= rules.min_judged_waves
    is_promoted = comparable and should_promote(rules.at_horizon, quality, base_quality)
    profile_changes.end(tx, running, "promoted" if is_promoted else "reverted")
    _insert_next_version(
        tx,
        "promoted" if is_promoted else "reverted",
        current if is_promoted else base,
        current,
        updated_by=PROMOTED_BY if is_promoted else base.updated_by,
        actor=PROMOTED_BY if is_promoted else "engine",
        ended_version=running.version,
        proposal_id=running.proposal_id,
        horizon_waves=running.duration_waves,
        waves_begun=running.waves_begun,
        quality=quality,
        base_quality=base_quality,
        judged_waves=judged_waves,
        base_judged_waves=base_judged_waves,
        wave=wave,
    )


def _insert_next_version(
    tx: Tx,
    how: str,
    content: Profile,
    current: Profile,
    *,
    updated_by: str,
    actor: str,
    wave: Wave | None = None,
    **detail: Any,
) -> Profile:
    stored = profiles.insert_version(
        tx, copy_as_next_version(content, current.version, updated_by=updated_by)
    )
    profile_changes.link_base(tx, stored.profile_id, stored.version, content.version)
    tx.journal(
        ProfileEnded(
            how=how,
            profile_id=stored.profile_id,
            base_version=content.version,
            version=stored.version,
            **detail,
        ),
        actor=actor,
        session_id=wave.session_id if wave else "",
        wave_id=wave.wave_id if wave else "",
        profile_id=stored.profile_id,
        profile_version=stored.version,
    )
    return stored
