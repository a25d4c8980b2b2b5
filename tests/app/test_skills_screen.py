"""Skills on the screen: which are loaded and why, and a key that loads and unloads them."""

from __future__ import annotations

import pytest
from app_scenes import Scene
from app_world import SIZES, screen_of, settled, until

from cockpit.app.application import CockpitApp
from cockpit.app.screens.lists.skills_screen import SkillsScreen
from cockpit.core.skills import skill_layers
from cockpit.loop.skills.session_skills import take_in_skills
from cockpit.loop.wave_context import WaveContext
from cockpit.store.sessions import sessions, waves

pytestmark = pytest.mark.slow


@pytest.fixture
def session_id(still, tmp_path, monkeypatch) -> str:
    """A session whose first wave has loaded two skills and named one."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COCKPIT_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setattr(skill_layers, "ENABLED", True)
    words = "use git to find why a test crashes with a traceback"
    scene = Scene(still.store, still.place.root).begin(words, task_type="implement", title="Crash")
    scene.wave("observing")
    still.engine.skills.refresh()

    def step(tx) -> None:
        session = sessions.load(tx.connection, scene.session_id)
        wave = waves.find_latest(tx.connection, scene.session_id)
        take_in_skills(tx, WaveContext(still.engine, session, wave))

    still.store.write_now(step)
    return scene.session_id


async def opened(pilot) -> SkillsScreen:
    await settled(pilot)
    screen_of(pilot).act("skills")
    await until(pilot, lambda: isinstance(pilot.app.screen, SkillsScreen))
    await until(pilot, lambda: len(pilot.app.screen.body.rows) == 7)
    await settled(pilot)
    return pilot.app.screen


async def test_a_key_loads_and_unloads(still, session_id):
    app = CockpitApp(still, session_id=session_id)
    async with app.run_test(size=(150, 42)) as pilot:
        screen = await opened(pilot)
        assert [(each.name, each.state, each.why) for each in screen.rows[:3]] == [
            ("debugging", "loaded", "it matches crashes, traceback, test"),
            ("git", "loaded", "you mentioned it"),
            ("testing-strategy", "named", "it matches test, crashes, traceback"),
        ]
        await pilot.press("enter")
        await until(pilot, lambda: screen.rows[0].state == "leaves")
        await pilot.press("end", "l")
        await until(pilot, lambda: "waits" in {each.state for each in screen.rows})
        waiting = [each.name for each in screen.rows if each.state == "waits"]
        assert waiting == ["writing-docs"]
        await pilot.press("escape")
        await until(pilot, lambda: len(app.screen_stack) == 1)


async def test_skills(still, session_id, pictures):
    app = CockpitApp(still, session_id=session_id)
    async with app.run_test(size=SIZES[0]) as pilot:
        await opened(pilot)
        await pictures(pilot, settled)
