"""What the backlog looks like: pictures in ``snapshots/``, of real journals on a standing clock."""

from __future__ import annotations

import pytest
import work_scenes
from app_scenes import Scene, to_decide
from app_world import settled, until

import themes
from cockpit.app.application import CockpitApp

pytestmark = pytest.mark.slow

WIDE = (150, 42)
SMALL = (80, 24)
SIZES = pytest.mark.parametrize("size", [WIDE, SMALL], ids=["wide", "small"])


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


@SIZES
def test_pane_with_work(picture, still, project, size):
    scene = to_decide(Scene(still.store, project))
    keys = ("f5",) if size == SMALL else ("alt+w", "j")
    assert picture(*keys, size=size, scene=scene)


@SIZES
def test_board(picture, size):
    assert picture("ctrl+t", "right", size=size)


@pytest.mark.parametrize("size", [(100, 30), (200, 50)], ids=["middle", "large"])
def test_board_at_other_sizes(picture, size):
    assert picture("ctrl+t", "right", size=size)


@pytest.mark.parametrize("theme", [theme.name for theme in themes.THEMES] + ["gruvbox"])
def test_board_themes(picture, theme):
    assert picture("ctrl+t", "right", theme=theme)


def test_board_grouped(picture):
    assert picture("ctrl+t", "t", "j")


@SIZES
def test_task(picture, size):
    assert picture("ctrl+t", "right", "enter", size=size)


@SIZES
def test_work_in_progress(picture, size):
    assert picture("ctrl+t", "right", "w", size=size)


@SIZES
def test_handoff(picture, size):
    assert picture("ctrl+t", "right", "right", "right", "right", "f", "d", size=size)


@SIZES
def test_queue(picture, size):
    assert picture("f9", "j", "j", size=size)


@SIZES
def test_task_form(picture, size):
    assert picture("ctrl+t", "right", "e", size=size)
