"""The agent's own call to shift its attention: proposed, waited for, told.

Like an action it is settled within its wave; the next wave begins under what was approved. Source:
RFC-003 §10.3; design of Orient, adaptation.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from cockpit.access.principals import agent
from cockpit.core.canonical_json import canonical_json, digest
from cockpit.loop.decisions.await_decision import Verdict, await_verdict
from cockpit.loop.decisions.profile_change_results import Origin
from cockpit.loop.decisions.profile_change_service import propose, settle
from cockpit.loop.wave_context import Here
from cockpit.orient.profile_changes.change_preview import horizon
from cockpit.store.context import profile_changes
from cockpit.store.context.profile_model import WEIGHT_ONE, Profile
from cockpit.store.sessions import proposals

TOOL = "propose_profile_change"


def proposal_id(key: str) -> str:
    """A change's id follows from its call's key: the same call proposes once."""
    return f"p-{digest([key, 'profile'])[:10]}"


async def attend(here: Here, call: Mapping[str, Any]) -> None:
    """See one ``propose_profile_change`` call through to its decision.

    Raises :class:`~cockpit.loop.decisions.await_decision.DeadlinePassed` when nobody decides.
    """
    session, settings = here.session, here.engine.settings
    identity = proposal_id(str(call["key"]))
    origin = Origin(session.session_id, here.wave.wave_id, session.task_id, session.policy)
    deadline = None if session.interactive else session.limits.get("deadline_s", 3600.0)
    outcome = await here.store.write(
        lambda tx: propose(
            tx,
            settings,
            canonical_json(call["arguments"]),
            agent(session.session_id),
            profile_id=session.profile_id,
            proposal_id=identity,
            origin=origin,
            deadline_s=deadline,
        )
    )
    if outcome.status == "pending":
        await await_verdict(here, identity)
        await here.store.write(lambda tx: settle(tx, settings))


def told(connection: sqlite3.Connection, key: str) -> tuple[str, str]:
    """What the agent is told of its proposal, and the exchange's status."""
    kept = profile_changes.load(connection, proposal_id(key))
    if kept.status == "approved":
        return (
            f"Approved by {kept.approved_by}: version {kept.applied_version} of your attention"
            f" profile holds {horizon(kept.effective_waves)}.",
            "approved",
        )
    if kept.rejection_code in ("rejected", "discussed") or kept.status == "expired":
        verdict = Verdict(proposals.load(connection, kept.proposal_id))
        return f"{verdict.told} Your attention profile is as it was.", verdict.status
    why = kept.rejection_reason or "it was not decided"
    return f"Refused ({kept.rejection_code or kept.status}): {why} Nothing changed.", "refused"


@lru_cache(maxsize=16)
def described(profile: Profile) -> str:
    """What the tool's description says of the profile that a change would start from."""
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
