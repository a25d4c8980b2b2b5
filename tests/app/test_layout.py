"""Panes, tabs and sizes: every pane is reachable, and a hidden proposal cannot be decided."""

from __future__ import annotations

import pytest
from app_world import calm, look, on_screen, settled, text_of, until
from textual.widgets import OptionList

from cockpit.app.actions.view_actions import pick_theme
from cockpit.app.application import CockpitApp
from cockpit.app.screens.panes import PANES
from cockpit.store.sessions import proposals

pytestmark = pytest.mark.slow


def shown(screen):
    return [name for name in PANES if screen.panes.pane(name).display]


def pending(scene):
    return [each.proposal_id for each in scene.store.read_now(proposals.select_pending)]


async def test_wide_screens_show_all_panes_and_say_the_keys_that_work(still, scene):
    """A key gives one pane the rest; a dialog over a proposal disarms it."""
    scene.begin().wave("observing").ask()
    async with on_screen(still, scene.session_id, size=(150, 42), ready=look) as (
        pilot,
        app,
        screen,
    ):
        assert screen.key_policy.is_armed
        await pilot.press("f1")
        await until(pilot, lambda: app.screen is not screen and not screen.key_policy.is_seen)
        still.store.clock.advance(5)
        assert not screen.key_policy.is_armed
        await pilot.press("escape")
        await settled(pilot)
        assert not screen.key_policy.is_armed
        assert pending(scene) == ["p-context"]

        assert shown(screen) == list(PANES)
        for key, pane in zip(("f2", "f3", "f4", "f5"), PANES, strict=True):
            await pilot.press(key)
            await until(pilot, lambda pane=pane: shown(screen) == [pane])
            assert screen.prompt.region.height >= 3
            await pilot.press(key)
            await until(pilot, lambda: shown(screen) == list(PANES))

        def labels():
            return [hint.label for hint in screen.panes.proposals.hints]

        await look(pilot)
        assert labels()[:2] == ["approve", "discuss"]
        screen.prompt.put("not like this")
        await until(pilot, lambda: labels() == ["sends your text"])
        screen.prompt.put("")
        await until(pilot, lambda: labels()[0] == "approve")
        await pilot.press("alt+c")
        await until(pilot, lambda: labels()[:2] == ["back, to decide", "narrow"])
        await pilot.press("alt+c")
        await until(pilot, lambda: labels()[:2] == ["approve", "discuss"])

        # What changes no height lays nothing out again, which would draw all of the screen.
        await look(pilot)
        laid_out = []
        screen.screen_layout_refresh_signal.subscribe(screen, laid_out.append)
        await pilot.press("x")
        await look(pilot)
        await pilot.press("backspace")
        await look(pilot)
        assert not laid_out

        # Any size draws.
        screen.prompt.hint = "word " * 80
        await calm(pilot)
        assert "…" in next(line for line in text_of(app).split("\n") if "word word" in line)
        await pilot.resize_terminal(20, 6)
        await pilot.press("f2", "f3", "f4", "f5")
        await settled(pilot)
        assert screen.prompt.has_focus


async def test_narrow_screens_show_one_pane_as_a_tab_which_an_arrival_turns(still, scene):
    """Its decision turns it back. Enter shows what waits unseen, and decides nothing."""
    scene.begin().wave("observing").say("agent", "hello")
    async with on_screen(still, scene.session_id, size=(80, 24)) as (pilot, _, screen):
        assert shown(screen) == ["conversation"]
        scene.ask()
        await until(pilot, lambda: shown(screen) == ["proposals"])
        assert screen.prompt.has_focus
        scene.decide("p-context", "approved")
        await until(pilot, lambda: shown(screen) == ["conversation"])

        await pilot.press("f5")
        await until(pilot, lambda: shown(screen) == ["work"])
        await pilot.click("#tab-bands")
        await until(pilot, lambda: shown(screen) == ["bands"])
        await pilot.resize_terminal(150, 42)
        await until(pilot, lambda: shown(screen) == list(PANES))
        await pilot.resize_terminal(99, 30)
        await until(pilot, lambda: shown(screen) == ["bands"])

        screen.prompt.focus()
        scene.ask("p-2")
        await look(pilot)
        assert shown(screen) == ["bands"]
        assert screen.key_policy.front is None
        await pilot.press("enter")
        await until(pilot, lambda: shown(screen) == ["proposals"])
        assert pending(scene) == ["p-2"]
        scene.decide("p-2", "approved")
        await until(pilot, lambda: shown(screen) == ["bands"])  # and no empty pane stays


async def test_tab_walks_over_what_can_be_seen_and_keys_and_themes_are_the_users(still):
    """The list of themes shows each, and leaving it none; one that is not there is told."""
    chosen = []
    app = CockpitApp(still, keys={"help": "ctrl+k"}, theme="no-such", on_theme=chosen.append)
    async with app.run_test(size=(150, 42)) as pilot:
        screen = await settled(pilot)
        assert app.theme == "cockpit-dark"
        assert len(app._notifications) == 1
        walked = []
        for _ in range(5):
            await pilot.press("tab")
            walked.append(screen.pane)
        assert walked == [*PANES, "prompt"]
        await pilot.press("ctrl+k")
        await until(pilot, lambda: app.screen is not screen)
        await pilot.press("escape", "f1")
        await settled(pilot)
        assert app.screen is screen

        before = app.theme
        for last in ("escape", "enter"):
            pick_theme(app)
            await until(pilot, lambda: len(app.screen.query("OptionList")) > 0)
            options = app.screen.query_one(OptionList)
            await until(pilot, lambda options=options: options.highlighted is not None)
            await pilot.press("down")
            await until(pilot, lambda: app.theme != before)
            await pilot.press(last)
            if last == "escape":
                await until(pilot, lambda: app.theme == before)
        await until(pilot, lambda: bool(chosen))
        assert chosen == [app.theme] != [before]
