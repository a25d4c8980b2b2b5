"""What the backlog looks like: pictures in ``snapshots/``, of real journals on a standing clock."""

from __future__ import annotations

import pytest
import work_scenes
from app_scenes import Scene, to_decide
from app_world import SIZES, settled, until

import themes
from cockpit.app.application import CockpitApp

pytestmark = pytest.mark.slow

WIDE = (150, 42)


@pytest.fixture
def picture(still, snap_compare):
    """Compare the app over the backlog with its picture, after some keys."""

    def compare(*keys, size=WIDE, theme=themes.DEFAULT, scene=None):
        work_scenes.story(still.store)
        app = CockpitApp(still, theme=theme)

        async def before(pilot):
            if scene is not None:
                app.attach(scene.session_id)
            await settled(pilot)
            for key in keys:
                covered = len(app.screen_stack)
                await pilot.press(key)
                if key in ("ctrl+t", "f9", "n", "w"):
                    await until(pilot, lambda covered=covered: len(app.screen_stack) > covered)
                await settled(pilot)

        return snap_compare(app, terminal_size=size, run_before=before)

    return compare


KEYS = {
    "board": "ctrl+t right",
    "task": "enter",
    "memory": "escape w",
    "form": "escape e",
    "handoff": "escape right right right f d",
    "queue": "escape f9 j j",
}
"""What is on top of what, in one run of the screen."""


async def test_work(still, pictures):
    work_scenes.story(still.store)
    app = CockpitApp(still)
    async with app.run_test(size=(160, 45)) as pilot:
        await settled(pilot)
        for name, keys in KEYS.items():
            await pilot.resize_terminal(160, 45)
            for key in keys.split():
                covered = len(app.screen_stack)
                await pilot.press(key)
                if key in ("ctrl+t", "f9", "enter", "e", "w", "f"):
                    await until(pilot, lambda covered=covered: len(app.screen_stack) > covered)
                await settled(pilot)
            await pictures(pilot, settled, name)


async def test_pane_with_work(still, project, pictures):
    work_scenes.story(still.store)
    scene = to_decide(Scene(still.store, project))
    app = CockpitApp(still)
    async with app.run_test(size=SIZES[0]) as pilot:
        app.attach(scene.session_id)
        await settled(pilot)
        await pilot.press("f5", "j")
        await pictures(pilot, settled)


@pytest.mark.parametrize("theme", [theme.name for theme in themes.THEMES] + ["gruvbox"])
def test_board_themes(picture, theme):
    assert picture("ctrl+t", "right", theme=theme)


def test_board_grouped(picture):
    assert picture("ctrl+t", "t", "j")
