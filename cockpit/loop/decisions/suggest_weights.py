"""The loop's own suggestion: waves that missed signals bring a temporary change of weights.

It is a profile change like any other: the guard judges it, and a policy or the user decides it. See
``docs/reference/feedback.md``, uses.
"""

from __future__ import annotations

import sqlite3

from cockpit.access.principals import agent
from cockpit.core.canonical_json import canonical_json, digest, parse_json
from cockpit.learn.decision_quality import measure_version
from cockpit.learn.suggest_weights import suggest_changes
from cockpit.loop.decisions.profile_change_decision import Origin
from cockpit.loop.decisions.propose_profile_change import propose_profile_change
from cockpit.loop.wave_context import WaveContext
from cockpit.orient.profile_changes.change_limits import AGENT_LIMITS
from cockpit.orient.profile_changes.guard import CAPABILITY, CRITICAL
from cockpit.store.context import profile_changes, profiles
from cockpit.store.db.transaction import Tx


def suggest_weights(tx: Tx, context: WaveContext) -> None:
    """Propose weights that would have kept what several waves missed, once for a version of the profile.

    Not those that were just measured and brought nothing.
    """
    session = context.session
    current = profiles.load_current(tx.connection, session.profile_id)
    if profile_changes.has_change_of(tx.connection, session.profile_id, current.version):
        return
    spared = (*CRITICAL, *CAPABILITY)
    suggested = suggest_changes(tx.connection, current, AGENT_LIMITS, spared)
    if not suggested or suggested[0]["rules"] == _find_rules_in_vain(tx.connection, context):
        return
    propose_profile_change(
        tx,
        context.engine.settings,
        canonical_json(suggested[0]),
        agent(session.session_id),
        profile_id=session.profile_id,
        proposal_id=f"p-{digest([context.wave.wave_id, 'weights'])[:10]}",
        origin=Origin(session.session_id, context.wave.wave_id, session.task_id, session.policy),
        deadline_s=context.proposal_deadline_s,
        weights_by="policy:suggested" if context.engine.settings.adaptation.auto != "never" else "",
    )


def _find_rules_in_vain(connection: sqlite3.Connection, context: WaveContext) -> object:
    """Return the rules of the last temporary change, where it ended without a better measured quality."""
    profile_id = context.session.profile_id
    last = profile_changes.find_last_ended(connection, profile_id)
    if last is None:
        return None
    during, before = (
        measure_version(connection, profile_id, version)
        for version in (last.version, last.base_version)
    )
    if during is None or before is None or during.mean > before.mean:
        return None
    if min(during.waves, before.waves) < context.engine.settings.adaptation.min_judged_waves:
        return None
    change = profile_changes.load(connection, last.proposal_id)
    return parse_json(change.payload).get("rules")
