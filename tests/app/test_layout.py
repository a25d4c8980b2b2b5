"""Panes, tabs and sizes: every pane is reachable, and a hidden proposal cannot be decided."""

from __future__ import annotations

import pytest
from app_scenes import Scene
from app_world import calm, look, settled, until
from textual.geometry import Size
from textual.widgets import OptionList

from cockpit.app.actions.view_actions import pick_theme
from cockpit.app.application import CockpitApp
from cockpit.app.screens.cockpit_screen import CockpitScreen
from cockpit.app.screens.panes import PANES
from cockpit.store.journal.event_types import Action
from cockpit.store.sessions import proposals
from widgets.frame.footer import KeyBar

pytestmark = pytest.mark.slow


@pytest.fixture
def scene(still, project):
    return Scene(still.store, project)


def shown(screen):
    return [name for name in PANES if screen.panes.pane(name).display]


def pending(scene):
    return [each.proposal_id for each in scene.store.read_now(proposals.select_pending)]


async def test_wide_screens_show_all_panes_and_f_keys_give_one_the_rest(still, scene):
    scene.begin().wave("observing").ask()
    app = CockpitApp(still)
    async with app.run_test(size=(150, 42)) as pilot:
        app.attach(scene.session_id)
        screen = await settled(pilot)
        assert shown(screen) == list(PANES)
        for key, pane in zip(("f2", "f3", "f4", "f5"), PANES, strict=True):
            await pilot.press(key)
            assert shown(screen) == [pane]
            assert screen.prompt.region.height >= 3
            await pilot.press(key)
            assert shown(screen) == list(PANES)


async def test_a_size_that_is_reported_again_lays_nothing_out(still, monkeypatch):
    layouts = []
    refresh = CockpitScreen._refresh_layout
    monkeypatch.setattr(
        CockpitScreen,
        "_refresh_layout",
        lambda screen, *args, **kwargs: (layouts.append(args), refresh(screen, *args, **kwargs)),
    )
    app = CockpitApp(still)
    async with app.run_test(size=(150, 42)) as pilot:
        screen = await settled(pilot)
        sizes = [args[0] for args in layouts if args and args[0] is not None]
        assert sizes == [Size(150, 42)]
        await pilot.resize_terminal(150, 42)
        await pilot.resize_terminal(120, 30)
        assert [args[0] for args in layouts if args][1:] == [Size(120, 30)]
        assert screen.size == Size(120, 30)


async def test_narrow_screens_show_one_pane_as_a_tab(still, scene):
    scene.begin().wave("observing").say("agent", "hello")
    app = CockpitApp(still)
    async with app.run_test(size=(80, 24)) as pilot:
        app.attach(scene.session_id)
        screen = await settled(pilot)
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
    app = CockpitApp(still)
    async with app.run_test(size=(80, 24)) as pilot:
        app.attach(scene.session_id)
        screen = await settled(pilot)
        scene.ask()
        await until(pilot, lambda: shown(screen) == ["proposals"])
        assert screen.prompt.has_focus
        scene.decide("p-context", "approved")
        await until(pilot, lambda: shown(screen) == ["conversation"])


async def test_enter_shows_what_waits_unseen_and_decides_nothing(still, scene):
    scene.begin().wave("observing").ask()
    app = CockpitApp(still)
    async with app.run_test(size=(80, 24)) as pilot:
        app.attach(scene.session_id)
        screen = await look(pilot)
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
    app = CockpitApp(still)
    async with app.run_test(size=(120, 40)) as pilot:
        app.attach(scene.session_id)
        screen = await look(pilot)

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


async def test_a_dialog_over_a_proposal_disarms_it(still, scene):
    scene.begin().wave("observing").ask()
    app = CockpitApp(still)
    async with app.run_test(size=(150, 42)) as pilot:
        app.attach(scene.session_id)
        screen = await look(pilot)
        assert screen.key_policy.is_armed
        await pilot.press("f1")
        await until(pilot, lambda: app.screen is not screen and not screen.key_policy.is_seen)
        still.store.clock.advance(5)
        assert not screen.key_policy.is_armed
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is screen)
        await settled(pilot)
        assert not screen.key_policy.is_armed
        assert pending(scene) == ["p-context"]


async def test_arrows_fold_thoughts_before_they_lead_back(still, scene):
    scene.begin().wave("observing").say("agent", "It is the sign.")
    scene.store.write_now(
        lambda tx: tx.append_row(
            Action.MODEL_THOUGHT,
            session_id=scene.session_id,
            body={"text": "A minus is a plus.", "blocks": 1, "kept": True},
        )
    )
    app = CockpitApp(still)
    async with app.run_test(size=(150, 42)) as pilot:
        app.attach(scene.session_id)
        app.trail.push("", "")
        screen = await settled(pilot)
        bar = screen.query_one(KeyBar)
        screen.panes.conversation.focus()
        await until(pilot, lambda: "→ unfold" in str(bar.render()))
        assert "← fold" not in str(bar.render())
        await pilot.press("right")
        await until(pilot, lambda: "← fold" in str(bar.render()))
        assert "→ unfold" not in str(bar.render())
        await pilot.press("left")
        await until(pilot, lambda: "→ unfold" in str(bar.render()))
        assert app.session_id == scene.session_id
        await pilot.press("left")
        await until(pilot, lambda: app.session_id == "")


async def test_tab_walks_over_what_can_be_seen(still, scene):
    app = CockpitApp(still)
    async with app.run_test(size=(150, 42)) as pilot:
        screen = await settled(pilot)
        walked = []
        for _ in range(5):
            await pilot.press("tab")
            walked.append(screen.pane)
        assert walked == [*PANES, "prompt"]


async def test_the_board_leads_to_another_session(still, scene):
    first = scene.begin("first", title="first").wave("observing")
    second = Scene(scene.store, scene.root).begin("second", title="second").say("agent", "two")
    app = CockpitApp(still)
    async with app.run_test(size=(150, 42)) as pilot:
        app.attach(first.session_id)
        screen = await settled(pilot)
        await pilot.press("alt+w")
        assert screen.pane == "work"
        rows = [row.title for row in screen.panes.work.view.rows]
        await pilot.press(*["j"] * rows.index("second"), "space")
        await until(pilot, lambda: app.screen is not screen)
        assert app.session_id == first.session_id
        await pilot.press("escape", "enter")
        await until(pilot, lambda: app.session_id == second.session_id)
        await settled(pilot)
        assert [turn.text for turn in screen.panes.conversation.turns] == ["second", "two"]
        assert screen.pane == "prompt"


async def test_sessions_can_be_picked_by_name(still, scene):
    scene.begin("first", title="first")
    second = Scene(scene.store, scene.root).begin("second", title="second")
    app = CockpitApp(still)
    async with app.run_test(size=(150, 42)) as pilot:
        await settled(pilot)
        await pilot.press("f6")
        await until(pilot, lambda: len(getattr(app.screen, "rows", ())) == 2)
        await pilot.press("slash", *"seco", "enter", "enter")
        await until(pilot, lambda: app.session_id == second.session_id)


@pytest.mark.parametrize("size", [(20, 6), (40, 10), (60, 15), (99, 24), (100, 20), (300, 80)])
async def test_any_size_draws(still, scene, size):
    scene.begin().wave("observing", "orienting", "deciding").say("agent", "x " * 500).edit()
    app = CockpitApp(still)
    async with app.run_test(size=size) as pilot:
        app.attach(scene.session_id)
        screen = await settled(pilot)
        for key in ("f2", "f3", "f4", "f5"):
            await pilot.press(key)
        await settled(pilot)
        assert screen.prompt.has_focus


async def test_a_theme_is_chosen_and_remembered(still):
    chosen = []
    app = CockpitApp(still, on_theme=chosen.append)
    async with app.run_test(size=(150, 42)) as pilot:
        await settled(pilot)
        await pilot.press("ctrl+p", *"theme: cockpit-light")
        await until(pilot, lambda: len(app.screen.query("OptionList")) > 0)
        await settled(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: app.theme == "cockpit-light")
        assert chosen == ["cockpit-light"]


async def test_the_list_of_themes_shows_each_and_leaving_it_none(still):
    chosen = []
    app = CockpitApp(still, on_theme=chosen.append)
    async with app.run_test(size=(100, 30)) as pilot:
        await settled(pilot)
        before = app.theme
        for leave in (["escape"], []):
            pick_theme(app)
            await until(pilot, lambda: len(app.screen.query("OptionList")) > 0)
            options = app.screen.query_one(OptionList)
            await until(
                pilot, lambda: pilot.app.screen.query_one(OptionList).highlighted is not None
            )
            shown = options.get_option_at_index(options.highlighted or 0).prompt
            assert before in str(shown) and "now" in str(shown)
            await pilot.press("down")
            await until(pilot, lambda: app.theme != before)
            if leave:
                await pilot.press(*leave)
            else:
                app.screen.dismiss(None)  # as a click beside it does
            await until(pilot, lambda: app.theme == before)
        pick_theme(app)
        await until(pilot, lambda: len(app.screen.query("OptionList")) > 0)
        await pilot.press("down", "enter")
        await until(pilot, lambda: bool(chosen))
        assert chosen == [app.theme] != [before]


async def test_a_theme_that_is_not_there_is_told(still):
    app = CockpitApp(still, theme="no-such")
    async with app.run_test(size=(150, 42)) as pilot:
        await settled(pilot)
        assert app.theme == "cockpit-dark"
        assert len(app._notifications) == 1


async def test_keys_of_the_users_work(still):
    app = CockpitApp(still, keys={"help": "ctrl+k"})
    async with app.run_test(size=(150, 42)) as pilot:
        screen = await settled(pilot)
        await pilot.press("ctrl+k")
        await until(pilot, lambda: app.screen is not screen)
        await pilot.press("escape", "f1")
        await settled(pilot)
        assert app.screen is screen


async def test_every_turn_is_there_in_order(still, scene):
    scene.begin()
    for number in range(50):
        scene.say("agent" if number % 2 else "person", f"message {number}")
    app = CockpitApp(still)
    async with app.run_test(size=(150, 42)) as pilot:
        app.attach(scene.session_id)
        screen = await settled(pilot)
        texts = [turn.text for turn in screen.panes.conversation.turns]
        assert texts == ["review pr 24", *(f"message {number}" for number in range(50))]


async def test_the_first_key_says_what_enter_does_with_an_empty_prompt(still, project):
    """Enter shows a proposal that is in another pane or session; the footer must not say that it sends."""
    scene = Scene(still.store, project).begin().wave("observing").ask()
    app = CockpitApp(still)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await settled(pilot)
        bar = screen.query_one(KeyBar)
        await until(pilot, lambda: (bar.hints[0].key, bar.hints[0].label) == ("⏎", "go there"))
        app.attach(scene.session_id)
        await settled(pilot)
        if not screen.panes.is_visible("proposals"):
            await until(pilot, lambda: bar.hints[0].label == "show it")
            await pilot.press("enter")
        keys = screen.panes.proposals
        await until(pilot, lambda: keys.hints[0].label in ("approve", "read on"))
        await pilot.press("x")
        await until(pilot, lambda: keys.hints[0].label == "sends your text")
        await until(pilot, lambda: "⏎" not in {hint.key for hint in bar.hints})


@pytest.mark.parametrize("width", [60, 80, 100, 160])
async def test_the_text_of_the_prompt_ends_with_an_ellipsis_where_it_is_cut(still, width):
    app = CockpitApp(still)
    async with app.run_test(size=(width, 24)) as pilot:
        screen = await settled(pilot)
        screen.prompt.hint = "word " * 60
        await calm(pilot)
        row = next(
            strip.text
            for strip in app.screen._compositor.render_strips()
            if "word word" in strip.text
        )
        assert "…" in row
