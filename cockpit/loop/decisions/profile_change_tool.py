"""The agent's tool ``propose_profile_change``: proposed, decided, and answered within its wave.

The next wave begins under the profile that was approved. See ``docs/reference/profile-changes.md``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from cockpit.access.principals import agent
from cockpit.core.canonical_json import canonical_json, digest
from cockpit.loop.decisions.await_decision import DecidedProposal, await_decision
from cockpit.loop.decisions.profile_change_decision import Origin
from cockpit.loop.decisions.propose_profile_change import propose_profile_change
from cockpit.loop.wave_context import WaveContext
from cockpit.orient.profile_changes.change_preview import duration_text
from cockpit.store.context import profile_changes
from cockpit.store.context.profile_model import WEIGHT_ONE, Profile
from cockpit.store.sessions import proposals

TOOL = "propose_profile_change"


def proposal_id_of_call(key: str) -> str:
    """Return the proposal id that follows from a call's idempotency key, so that a call proposes once."""
    return f"p-{digest([key, 'profile'])[:10]}"


async def run_profile_change_call(context: WaveContext, call: Mapping[str, Any]) -> None:
    """Propose the change of one planned ``call`` and wait for its decision.

    Raises :class:`~cockpit.loop.decisions.await_decision.DeadlinePassed` when no decision comes in time.
    """
    session, settings = context.session, context.engine.settings
    proposal_id = proposal_id_of_call(str(call["key"]))
    origin = Origin(session.session_id, context.wave.wave_id, session.task_id, session.policy)
    outcome = await context.store.write(
        lambda tx: propose_profile_change(
            tx,
            settings,
            canonical_json(call["arguments"]),
            agent(session.session_id),
            profile_id=session.profile_id,
            proposal_id=proposal_id,
            origin=origin,
            deadline_s=context.proposal_deadline_s,
        )
    )
    if outcome.status == "pending":
        await await_decision(context, proposal_id)


def read_call_result(connection: sqlite3.Connection, key: str) -> tuple[str, str]:
    """Return the result that the agent reads of the call with that key, and the exchange's status."""
    row = profile_changes.load(connection, proposal_id_of_call(key))
    if row.status == "approved":
        return (
            f"Approved by {row.approved_by}: version {row.applied_version} of your attention"
            f" profile applies {duration_text(row.effective_waves)}.",
            "approved",
        )
    if row.rejection_code in ("rejected", "discussed") or row.status == "expired":
        decided = DecidedProposal(proposals.load(connection, row.proposal_id))
        return f"{decided.message} Your attention profile did not change.", decided.status
    reason = row.rejection_reason or "it was not decided"
    return f"Refused ({row.rejection_code or row.status}): {reason} Nothing changed.", "refused"


@lru_cache(maxsize=16)
def describe_profile(profile: Profile) -> str:
    """Return the part of the tool's description that states the profile a change starts from."""
    bands = ", ".join(
        f"{band.name} {band.min_tokens}/{band.target_tokens}/{band.max_tokens}"
        for band in profile.bands
    )
    rules = ", ".join(
        f"{rule.rule_id} {rule.priority_weight / WEIGHT_ONE:g}" for rule in profile.rules
    )
    return (
        f" base_profile_version is {profile.version}. Bands (floor/target/ceiling): {bands}."
        f" Rules (priority): {rules}."
    )
