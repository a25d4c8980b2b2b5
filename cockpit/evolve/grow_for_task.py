"""Grow the tool that a task waits for, in the task's own session.

See ``docs/reference/evolve.md``, in a task.
"""

from __future__ import annotations

from cockpit.evolve.grow_tool import Grower, Wish
from cockpit.evolve.propose_grown_tool import preview_adoption
from cockpit.loop.growth.growth_order import GrowthEnd, GrowthOrder
from cockpit.loop.wave_context import WaveContext


async def grow_for_task(context: WaveContext, order: GrowthOrder) -> GrowthEnd:
    """Grow until the tests are green or no further round would help; nothing is written to the project.

    Rounds that are stored are not repeated. Raises ``CockpitError`` where nothing can grow, and for files
    that are in the way of what grew.
    """
    engine, session_id = context.engine, context.session.session_id
    wish = Wish(
        order.want,
        name=order.name,
        growth_id=order.growth_id,
        wave_id=context.wave.wave_id,
        only_reads=order.only_reads,
    )
    grower = Grower(engine, engine.model(context.session.model), session_id, wish)
    grown = await grower.grow()
    rounds = grown.growth.rounds
    if grown.outcome != "green":
        return GrowthEnd(None, grown.outcome, grown.why, rounds)
    preview = await preview_adoption(engine, session_id, grown, within="propose_tool")
    return GrowthEnd(preview, grown.outcome, "", rounds)
