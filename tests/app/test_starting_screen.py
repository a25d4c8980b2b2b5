"""The first frame: no key of those typed early is lost."""

from __future__ import annotations

import asyncio

import pytest
from app_scenes import Scene
from app_world import text_of, until
from textual import events

from cockpit.app.application import CockpitApp
from cockpit.app.screens.cockpit_screen import CockpitScreen
from cockpit.core.errors import CockpitError
from cockpit.store.sessions import proposals

pytestmark = pytest.mark.slow

SIZE = (120, 24)


class Opening:
    """An engine that opens when the test says so."""

    def __init__(self, engine):
        self.engine = engine
        self.may_open = asyncio.Event()
        self.error = None

    async def __call__(self, show):
        await self.may_open.wait()
        if self.error is not None:
            raise self.error
        return self.engine


async def test_keys_typed_before_the_prompt_are_typed_in_order(still):
    opening = Opening(still)
    app = CockpitApp(open_engine=opening)
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("s", "e", "e", "left", "y", "q", "backspace", "end", "ctrl+j")
        app.post_message(events.Paste("pasted\nlines"))
        await pilot.press("!", "x", "backspace")
        assert "seey" in text_of(app)
        opening.may_open.set()
        await until(pilot, lambda: isinstance(app.screen, CockpitScreen))
        await pilot.press("z")
        await until(pilot, lambda: app.main.prompt.text.endswith("z"))
        assert app.main.prompt.text == "seye\npasted\nlines!z"


async def test_an_early_enter_sends_the_text_and_decides_nothing(still, project, monkeypatch):
    scene = Scene(still.store, project).begin().wave("observing").ask()
    sent = []
    monkeypatch.setattr(CockpitApp, "send_message", lambda app, text, *rest: sent.append(text))
    opening = Opening(still)
    app = CockpitApp(open_engine=opening, session_id=scene.session_id)
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("enter", "enter", "h", "i", "enter")
        opening.may_open.set()
        await until(pilot, lambda: sent)
    waiting = still.store.read_now(proposals.select_pending)
    assert sent == ["hi"]
    assert len(waiting) == 1


async def test_ctrl_c_before_the_prompt_leaves(still):
    app = CockpitApp(open_engine=Opening(still))
    async with app.run_test(size=SIZE) as pilot:
        await pilot.press("a", "ctrl+c")
    assert app.return_code == 130


async def test_an_engine_that_does_not_open_ends_the_screen(still):
    opening = Opening(still)
    opening.error = error = CockpitError("The store is broken.")
    opening.may_open.set()
    app = CockpitApp(open_engine=opening)
    async with app.run_test(size=SIZE) as pilot:
        await until(pilot, lambda: app.fatal_error is not None)
    assert app.fatal_error is error
