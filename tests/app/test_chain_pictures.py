"""What chains look like: pictures in ``snapshots/``, of real journals on a standing clock."""

from __future__ import annotations

import chain_scenes
import pytest
from app_world import look, settled, until

import themes
from cockpit.app.application import CockpitApp

pytestmark = pytest.mark.slow

WIDE = (150, 42)
SMALL = (80, 24)
THEMES = [theme.name for theme in themes.THEMES] + ["gruvbox"]


@pytest.fixture
def picture(still, project, snap_compare):
    """Compare the app over two chains with its picture, after some keys."""

    def compare(*keys, size=WIDE, theme=themes.DEFAULT):
        chain_scenes.running(still.store, project)
        app = CockpitApp(still, theme=theme)

        async def before(pilot):
            await look(pilot)
            for key in keys:
                covered = len(app.screen_stack)
                await pilot.press(key)
                if key == "space":
                    await until(pilot, lambda covered=covered: len(app.screen_stack) > covered)
                await settled(pilot)
            await look(pilot)

        return snap_compare(app, terminal_size=size, run_before=before)

    return compare


@pytest.mark.parametrize("size", [WIDE, (100, 30), (200, 50)], ids=["wide", "middle", "large"])
def test_pane_with_chains(picture, size):
    assert picture("alt+w", "j", "j", size=size)


def test_pane_with_chains_small(picture):
    assert picture("f5", "alt+w", "j", "j", size=SMALL)


def test_trees_opened(picture):
    assert picture("f5", "alt+w", "right", "G", "right", "g")


@pytest.mark.parametrize("theme", THEMES)
def test_chain_themes(picture, theme):
    assert picture("f5", "alt+w", "j", "right", theme=theme)


@pytest.mark.parametrize("size", [WIDE, SMALL], ids=["wide", "small"])
def test_peek_at_a_role(picture, size):
    keys = ("f5", "alt+w") if size == SMALL else ("alt+w",)
    assert picture(*keys, "j", "j", "space", size=size)


def test_attached_to_a_role(picture):
    assert picture("alt+w", "j", "j", "enter")
