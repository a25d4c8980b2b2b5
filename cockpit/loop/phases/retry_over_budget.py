"""A wave that failed because its pinned facts had no room, made ready for another try.

Nothing was compiled for it, so it may take in what the user changed since: the files that say who the agent
is, the profile, and a larger budget. See ``docs/reference/kernel.md``, the compiler.
"""

from __future__ import annotations

from msgspec.structs import replace

from cockpit.decide.context_window import fit_budget
from cockpit.learn.decision_quality import measure_version
from cockpit.loop.decisions.profile_change_expiry import pin_profile
from cockpit.loop.intake.baseline_facts import baseline
from cockpit.loop.phases.session_tools import tools_of_session
from cockpit.loop.wave_context import WaveContext
from cockpit.store.context import facts, profiles
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import sessions, waves

RETAKEN = "pinned_over_budget"
"""The failure after which a wave takes in its inputs again."""


async def retake_inputs(context: WaveContext) -> WaveContext:
    """Take in identity, profile and budget as they are now, if the wave failed for its pins.

    Returns the context to orient with. Any other wave, and one that has its packet, stays as it is.
    """
    wave_id = context.wave.wave_id
    failure = context.store.read_now(lambda connection: waves.find_failure(connection, wave_id))
    if failure != RETAKEN or context.wave.packet_id:
        return context
    engine = context.engine
    identity = baseline(engine.ground.confined, engine.settings.user_dir, tools_of_session(context))

    def retake(tx: Tx) -> WaveContext:
        facts.record(
            tx,
            session_id=context.session.session_id,
            wave_id=wave_id,
            ordinal=context.wave.ordinal,
            pinned_now=context.wave.pinned_now,
            facts=identity,
            job="baseline",
        )
        return _repin_profile(tx, context)

    return await context.store.write(retake)


def _repin_profile(tx: Tx, context: WaveContext) -> WaveContext:
    """Pin the current version of the session's profile, or that of a larger budget that was set since."""
    settings, session = context.engine.settings, context.session
    current = profiles.load_current(tx.connection, session.profile_id)
    budget = fit_budget(session.model, settings.token_budget, settings.model)
    if budget > current.total_token_budget:
        current = profiles.ensure_default(tx, budget)
        session = sessions.set_profile(tx, session.session_id, current.profile_id)
    is_same = session.profile_id == context.session.profile_id
    if is_same and current.version == context.wave.profile_version:
        return context
    pinned = pin_profile(tx, settings, session.profile_id, measure_version, context.wave)
    wave = waves.set_profile_version(tx, context.wave.wave_id, pinned.version)
    return replace(context, session=session, wave=wave)
