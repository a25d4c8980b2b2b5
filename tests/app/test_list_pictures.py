"""Lists with nothing in them, and lists that are full of long, wide and hostile text: pictures of each."""

from __future__ import annotations

import pytest
from app_scenes import Scene
from app_world import SIZES, screen_of, settled, until
from test_list_screen import HOSTILE

from cockpit.app.application import CockpitApp
from cockpit.app.screens.lists.list_screen import ListScreen
from cockpit.backlog import service
from cockpit.core.skills import skill_layers

pytestmark = pytest.mark.slow

NARROW_AND_WIDE = (SIZES[0], SIZES[3])
EMPTY = ("sessions", "requests", "trust", "notes", "session_state", "knowledge")
LONG = "Say in one long sentence why the second outage of a connection starts at the longest delay"
WIDE = "修正する：接続が切れたあとの待ち時間 👩‍💻 équipe"
TITLES = (LONG, WIDE, HOSTILE, "a" * 200, "src/" + "very/deep/" * 12 + "file.py", "Short")


def drawn(app) -> str:
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


async def read(pilot) -> None:
    """Wait until the rows and the detail of a list are drawn."""
    await until(pilot, lambda: isinstance(pilot.app.screen, ListScreen))
    screen = pilot.app.screen
    await until(pilot, lambda: not screen._reading and not screen._reading_detail)
    await settled(pilot)


async def test_lists_of_nothing(still, pictures, tmp_path, monkeypatch) -> None:
    """Each says what will appear in it and what to press."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COCKPIT_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setattr(skill_layers, "ENABLED", False)
    app = CockpitApp(still)
    async with app.run_test(size=SIZES[0]) as pilot:
        await settled(pilot)
        for name in EMPTY:
            screen_of(pilot).act(name)
            await until(pilot, lambda name=name: getattr(app.screen, "PANE", "") == name)
            await pictures(pilot, read, name, NARROW_AND_WIDE)
            assert "…" not in drawn(app).splitlines()[1], "the sentence is there in full"
            assert not app.screen._detail.display, "an empty half says nothing"
            await pilot.press("escape", "escape")
            await until(pilot, lambda: len(app.screen_stack) == 1)
        for name in ("board", "queue"):
            screen_of(pilot).act(name)
            await until(pilot, lambda: len(app.screen_stack) == 2)
            await pictures(pilot, settled, name, NARROW_AND_WIDE)
            await pilot.press("escape")
            await until(pilot, lambda: len(app.screen_stack) == 1)


async def test_full_lists_of_hostile_text(still, project, pictures) -> None:
    """No text leaves its column, and nothing of it is carried out by the terminal."""
    for number in range(24):
        title = TITLES[number % len(TITLES)]
        scene = Scene(still.store, project).begin(title, title=title, branch=title[:40])
        if number % 3 == 0:
            scene.wave("observing").say("agent", f"{title}\n\n- {title}").edit(f"p-{number}")

    def tasks(tx) -> None:
        epic = service.create_epic(tx, WIDE, priority="P1", by="user").epic_id
        story = service.create_story(tx, LONG, epic_id=epic, by="user").story_id
        for number in range(30):
            title = TITLES[number % len(TITLES)]
            service.create_task(tx, title, story_id=story, task_type="chore", by="user")

    still.store.write_now(tasks)
    app = CockpitApp(still)
    async with app.run_test(size=SIZES[0]) as pilot:
        await settled(pilot)
        for name in ("sessions", "requests"):
            screen_of(pilot).act(name)
            await until(pilot, lambda name=name: getattr(app.screen, "PANE", "") == name)
            await until(pilot, lambda: len(app.screen.rows) >= 8)
            await pictures(pilot, read, name)
            await pilot.press("escape", "escape")
            await until(pilot, lambda: len(app.screen_stack) == 1)
        for name in ("board", "queue"):
            screen_of(pilot).act(name)
            await until(pilot, lambda: len(app.screen_stack) == 2)
            await pictures(pilot, settled, name)
            await pilot.press("escape")
            await until(pilot, lambda: len(app.screen_stack) == 1)
        app.attach(app.state.sessions and next(iter(app.state.sessions)))
        await pictures(pilot, settled, "main")
