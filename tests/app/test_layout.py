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


async def test_wide_screens_show_all_panes_and_f_keys_give_one_the_rest(still, scene):
    scene.begin().wave("observing").ask()
    async with on_screen(still, scene.session_id, size=(150, 42)) as (pilot, _, screen):
        assert shown(screen) == list(PANES)
        for key, pane in zip(("f2", "f3", "f4", "f5"), PANES, strict=True):
            await pilot.press(key)
            assert shown(screen) == [pane]
            assert screen.prompt.region.height >= 3
            await pilot.press(key)
            assert shown(screen) == list(PANES)


async def test_narrow_screens_show_one_pane_as_a_tab(still, scene):
    scene.begin().wave("observing").say("agent", "hello")
    async with on_screen(still, scene.session_id, size=(80, 24)) as (pilot, _, screen):
        assert shown(screen) == ["conversation"]
        await pilot.press("f5")
        assert shown(screen) == ["work"]
        await pilot.click("#tab-bands")
        await until(pilot, lambda: shown(screen) == ["bands"])
        await pilot.resize_terminal(150, 42)
        await until(pilot, lambda: shown(screen) == list(PANES))
        await pilot.resize_terminal(99, 30)
        await until(pilot, lambda: shown(screen) == ["bands"])


async def test_an_arrival_turns_the_tab_and_its_decision_turns_it_back(still, scene):
    scene.begin().wave("observing")
    async with on_screen(still, scene.session_id, size=(80, 24)) as (pilot, _, screen):
        scene.ask()
        await until(pilot, lambda: shown(screen) == ["proposals"])
        assert screen.prompt.has_focus
        scene.decide("p-context", "approved")
        await until(pilot, lambda: shown(screen) == ["conversation"])


async def test_enter_shows_what_waits_unseen_and_decides_nothing(still, scene):
    scene.begin().wave("observing").ask()
    async with on_screen(still, scene.session_id, size=(80, 24), ready=look) as (pilot, _, screen):
        await pilot.press("f3")
        assert shown(screen) == ["bands"]
        await look(pilot)
        assert screen.key_policy.front is None
        await pilot.press("enter")
        assert shown(screen) == ["proposals"]
        assert pending(scene) == ["p-context"]
        scene.decide("p-context", "approved")
        await until(pilot, lambda: shown(screen) == ["bands"])  # and no empty pane stays


async def test_the_keys_under_a_proposal_are_those_that_work(still, scene):
    scene.begin().wave("observing").ask()
    async with on_screen(still, scene.session_id, size=(120, 40), ready=look) as (pilot, _, screen):

        def labels():
            return [hint.label for hint in screen.panes.proposals.hints]

        assert labels()[:2] == ["approve", "discuss"]
        screen.prompt.put("not like this")
        await until(pilot, lambda: labels() == ["sends your text"])
        screen.prompt.put("")
        await until(pilot, lambda: labels()[0] == "approve")
        await pilot.press("alt+c")
        await until(pilot, lambda: labels()[:2] == ["back, to decide", "narrow"])
        await pilot.press("alt+c")
        await until(pilot, lambda: labels()[:2] == ["approve", "discuss"])


async def test_tab_walks_over_what_can_be_seen_and_the_users_keys_work(still):
    app = CockpitApp(still, keys={"help": "ctrl+k"})
    async with app.run_test(size=(150, 42)) as pilot:
        screen = await settled(pilot)
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


async def test_the_list_of_themes_shows_each_and_leaving_it_none(still):
    chosen = []
    app = CockpitApp(still, on_theme=chosen.append)
    async with app.run_test(size=(100, 30)) as pilot:
        await settled(pilot)
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


async def test_any_size_draws(still, scene):
    scene.begin().wave("observing", "orienting", "deciding").say("agent", "x " * 500).edit()
    async with on_screen(still, scene.session_id, size=(100, 20)) as (pilot, app, screen):
        for size in ((20, 6), (60, 15), (300, 80)):
            await pilot.resize_terminal(*size)
            for key in ("f2", "f3", "f4", "f5"):
                await pilot.press(key)
            await settled(pilot)
            assert screen.prompt.has_focus
            screen.prompt.hint = "word " * 80
            await calm(pilot)
            assert size[0] < 60 or "…" in next(
                line for line in text_of(app).split("\n") if "word word" in line
            )


async def test_a_theme_that_is_not_there_is_told(still):
    app = CockpitApp(still, theme="no-such")
    async with app.run_test(size=(150, 42)) as pilot:
        await settled(pilot)
        assert app.theme == "cockpit-dark"
        assert len(app._notifications) == 1


async def test_a_dialog_over_a_proposal_disarms_it(still, scene):
    scene.begin().wave("observing").ask()
    async with on_screen(still, scene.session_id, ready=look) as (pilot, app, screen):
        assert screen.key_policy.is_armed
        await pilot.press("f1")
        await until(pilot, lambda: app.screen is not screen and not screen.key_policy.is_seen)
        still.store.clock.advance(5)
        assert not screen.key_policy.is_armed
        await pilot.press("escape")
        await settled(pilot)
        assert not screen.key_policy.is_armed
        assert pending(scene) == ["p-context"]
