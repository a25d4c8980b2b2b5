"""The horizon of an adaptation: waves that begin under it, and how it ends.

Counting and ending happen in the transaction that begins a wave, so that a crash neither counts a
wave twice nor lets a version outlive its horizon. Source: RFC-003 §10.3.4, §13.3.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cockpit.access.principals import Caller
from cockpit.access.token_scopes import APPROVE
from cockpit.core.errors import IllegalTransition
from cockpit.learn.decision_quality import Measured
from cockpit.loop.decisions.profile_change_results import ChangeNotMade, actor_of
from cockpit.loop.decisions.profile_change_service import admin_of, settle
from cockpit.loop.runtime_settings import RuntimeSettings
from cockpit.orient.profile_changes.apply_change import again, promotes
from cockpit.orient.profile_changes.guard import unsafe
from cockpit.store.context import profile_changes, profiles
from cockpit.store.context.profile_changes import TemporaryChange
from cockpit.store.context.profile_model import Profile
from cockpit.store.db.transaction import Tx
from cockpit.store.journal.details.profiles import (
    ProfileEnded,
    ProfilePromoted,
    ProfileReverted,
    ProfileRolledBack,
)
from cockpit.store.sessions.waves import Wave

Measure = Callable[[sqlite3.Connection, str, int], Measured | None]
"""The decision quality of the waves that ran under (profile id, version); None where none was judged."""

PROMOTED_BY = "policy:promote_if_better"


@dataclass(frozen=True, slots=True)
class Pinned:
    """What a wave begins under. ``waves_left`` is None when no adaptation runs, else how many more
    waves may begin under it after this one."""

    profile_id: str
    version: int
    waves_left: int | None


def unmeasured(connection: sqlite3.Connection, profile_id: str, version: int) -> Measured | None:
    """No quality is known: a horizon's end always goes back."""
    return None


def begin(
    tx: Tx,
    settings: RuntimeSettings,
    profile_id: str,
    measure: Measure = unmeasured,
    wave: Wave | None = None,
) -> Pinned:
    """The version to pin for ``wave``, which begins now, counted; the journal names it when it ends one.

    Changes decided elsewhere are carried over first, and an adaptation whose waves have all begun
    ends: the next version is what was there before it, or, promoted, itself.
    """
    settle(tx, settings)
    running = profile_changes.find_running(tx.connection, profile_id)
    if running is not None and running.waves_left == 0:
        _end(tx, settings, running, measure, wave)
        running = None
    version = profiles.load_current(tx.connection, profile_id).version
    if running is None:
        return Pinned(profile_id, version, None)
    return Pinned(profile_id, version, profile_changes.count_wave(tx, running).waves_left)


def roll_back(
    tx: Tx, settings: RuntimeSettings, profile_id: str, caller: Caller, *, to: int | None = None
) -> Profile:
    """End what runs now, by hand: the next version has the content from before it, or of ``to``.

    Raises ``NotAllowed``, ``NotFound``, ``IllegalTransition`` when there is nothing to go back to,
    and :class:`ChangeNotMade` when that version would not be safe.
    """
    caller.require(APPROVE, "roll a profile back")
    settle(tx, settings)
    running = profile_changes.find_running(tx.connection, profile_id)
    now = profiles.load_current(tx.connection, profile_id)
    if running is None and to is None:
        raise IllegalTransition(
            f"No adaptation of {profile_id} runs. To go back to an earlier version, name it with"
            " --to; `cockpit profile history` lists them."
        )
    target = running.base_version if running is not None and to is None else to
    content = profiles.load(tx.connection, profile_id, target or now.version)
    if running is None and content.digest == now.digest:
        raise IllegalTransition(f"Version {now.version} of {profile_id} is the same as {target}.")
    refusals = unsafe(content, now, admin_of(settings))
    if refusals:
        raise ChangeNotMade(refusals)
    if running is not None:
        profile_changes.end(tx, running, "rolled_back")
    return _next(
        tx,
        ProfileRolledBack,
        content,
        now,
        updated_by=content.updated_by if to is None else caller.namespace,
        actor=actor_of(caller),
        ended_version=now.version,
        proposal_id=running.proposal_id if running is not None else "",
    )


def _end(
    tx: Tx,
    settings: RuntimeSettings,
    running: TemporaryChange,
    measure: Measure,
    wave: Wave | None,
) -> None:
    now = profiles.load(tx.connection, running.profile_id, running.version)
    base = profiles.load(tx.connection, running.profile_id, running.base_version)
    policy = settings.adaptation
    found = [
        measure(tx.connection, running.profile_id, version)
        for version in (running.version, running.base_version)
    ]
    quality, before = (each.mean if each else None for each in found)
    judged, judged_before = (each.waves if each else 0 for each in found)
    # Few waves tell more of chance than of the version.
    enough = min(judged, judged_before) >= policy.min_judged_waves
    stays = enough and promotes(policy.at_horizon, quality, before)
    profile_changes.end(tx, running, "promoted" if stays else "reverted")
    _next(
        tx,
        ProfilePromoted if stays else ProfileReverted,
        now if stays else base,
        now,
        updated_by=PROMOTED_BY if stays else base.updated_by,
        actor=PROMOTED_BY if stays else "engine",
        ended_version=running.version,
        proposal_id=running.proposal_id,
        horizon_waves=running.duration_waves,
        waves_begun=running.waves_begun,
        quality=quality,
        base_quality=before,
        judged_waves=judged,
        base_judged_waves=judged_before,
        wave=wave,
    )


def _next(
    tx: Tx,
    event: type[ProfileEnded],
    content: Profile,
    now: Profile,
    *,
    updated_by: str,
    actor: str,
    wave: Wave | None = None,
    **own: Any,
) -> Profile:
    stored = profiles.insert_version(tx, again(content, now.version, updated_by=updated_by))
    profile_changes.link_base(tx, stored.profile_id, stored.version, content.version)
    tx.journal(
        event(
            profile_id=stored.profile_id,
            base_version=content.version,
            version=stored.version,
            **own,
        ),
        actor=actor,
        session_id=wave.session_id if wave else "",
        wave_id=wave.wave_id if wave else "",
        profile_id=stored.profile_id,
        profile_version=stored.version,
    )
    return stored
