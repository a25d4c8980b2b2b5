"""A task of a chain that lacks a tool: it waits until the deadline, and is blocked with the reason then."""

from __future__ import annotations

import os
from pathlib import Path

import growth_story as story
import pytest
from tasks.taskrun_world import World, turn

from cockpit.act.own_tools.adopt_tool import ADOPT
from cockpit.evolve.grow_for_task import grow_for_task
from cockpit.loop.growth.propose_tool import GROWTH
from cockpit.loop.runtime_settings import Limits, RuntimeSettings
from cockpit.store.sessions import proposals

pytestmark = pytest.mark.slow


async def test_nobody_adopts_and_the_task_is_blocked_with_the_reason(tmp_path: Path) -> None:
    world = World.made(tmp_path)
    arguments = ", ".join(f"{key} = '{value}'" for key, value in story.PROPOSED.items())
    scenario = turn("implementer", "propose_tool", arguments) + story.GROWS
    settings = RuntimeSettings(
        user_dir=tmp_path / "config",
        environment=dict(os.environ),
        limits=Limits(deadline_s=0.3),
        grow_tool=grow_for_task,
    )
    task_id = world.task()
    outcome = await world.do(scenario, task_id, settings=settings)
    assert outcome.status == "blocked", outcome
    assert world.read(task_id).status == "blocked"
    assert "adopt the tool parse_pcab" in outcome.summary
    stored = world.store.read_now(lambda c: proposals.select_recent(c, 20))
    decided = {each.body.get("type"): (each.status, each.decided_by) for each in stored}
    assert decided[GROWTH] == ("approved", "policy:all"), "the policy lets it grow"
    assert decided[ADOPT] == ("expired", "deadline"), "and adopts nothing"
    assert not (world.root / ".cockpit" / "tools").exists()
    world.store.close()
