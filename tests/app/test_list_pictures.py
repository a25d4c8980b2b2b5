"""Pictures of the backlog's screens, of lists with nothing in them, and of chains."""

from __future__ import annotations

import pytest
import work_scenes
from app_world import calm, on_screen, screen_of, settled, text_of, until
from chain_scenes import running

pytestmark = pytest.mark.slow

SIZE = (120, 36)
EMPTY = ("sessions", "requests", "trust", "notes", "session_state", "knowledge")
PICTURED = ("sessions", "board", "queue", "stats")
"""The other lists differ in their sentence alone."""
BACKLOG = {
    "board-grouped": "ctrl+t t j",
    "task": "t right enter",
    "memory": "escape w",
    "form": "escape e",
    "handoff": "escape right right right f d",
    "queue": "escape f9 j j",
}
"""What is on top of what, in one run of the screen."""
OPENERS = ("ctrl+t", "f9", "e", "w", "f")


async def press(pilot, keys: str) -> None:
    for key in keys.split():
        covered = len(pilot.app.screen_stack)
        await pilot.press(key)
        if key in OPENERS:
            await until(pilot, lambda covered=covered: len(pilot.app.screen_stack) > covered)
        await settled(pilot)


async def open_list(pilot, name: str) -> None:
    screen_of(pilot).act(name)
    await until(pilot, lambda: len(pilot.app.screen_stack) == 2)
    await calm(pilot)


async def test_backlog(still, picture):
    work_scenes.story(still.store)
    async with on_screen(still, size=SIZE) as (pilot, _, _):
        for name, keys in BACKLOG.items():
            await press(pilot, keys)
            await picture(pilot, name)


async def test_lists_of_nothing(still, picture, tmp_path, monkeypatch):
    """Each says what will appear in it and what to press."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COCKPIT_CONFIG_DIR", str(tmp_path / "config"))
    async with on_screen(still, size=(60, 20)) as (pilot, app, _):
        for name in (*EMPTY, "board", "queue", "stats"):
            await open_list(pilot, name)
            if name in PICTURED:
                await picture(pilot, name)
            if name in EMPTY:
                assert "…" not in text_of(app).splitlines()[1], "the sentence is there in full"
                assert not app.screen._detail.display, "an empty half says nothing"
            while len(app.screen_stack) > 1:
                await pilot.press("escape")
                await calm(pilot)


async def test_chains_beside_a_conversation(still, project, picture):
    """The role of a chain that is followed, and a glance at it."""
    running(still.store, project)
    async with on_screen(still, size=(150, 42)) as (pilot, app, _):
        await press(pilot, "alt+w j j space")
        await until(pilot, lambda: len(app.screen_stack) > 1)
        await picture(pilot, "peek")
        await press(pilot, "escape enter")
        await picture(pilot, "role", ready=settled)
