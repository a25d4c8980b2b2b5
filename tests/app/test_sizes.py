"""The main states at five sizes, from 60×20 to 250×70: pictures in ``snapshots/``."""

from __future__ import annotations

import pytest
from app_scenes import AFTER, BEFORE, THOUGHTS, Scene, to_decide
from app_world import SIZES, calm, look, screen_of, settled, show_proposal, until
from chain_scenes import running
from chains.measures.chain_days import three_days
from packet_scenes import known
from wave_scenes import walk

from cockpit.app.actions import packet_actions
from cockpit.app.application import CockpitApp
from cockpit.app.dialogs.band_facts import BandFacts
from cockpit.app.dialogs.packet_diff import PacketDiffDialog
from cockpit.app.screens.replay_screen import ReplayApp, read_session_rows
from cockpit.app.screens.stats_screen import StatsScreen

pytestmark = pytest.mark.slow


@pytest.fixture
def scene(still, project):
    return Scene(still.store, project)


def talk(scene):
    walk(scene.begin(), 7)
    return scene.say("agent", THOUGHTS)


STATES = ("welcome", "conversation", "diff", "request", "bands", "chains")


@pytest.mark.parametrize("state", STATES)
async def test_main_states(still, scene, project, pictures, state):
    if state == "chains":
        running(still.store, project)
    elif state == "conversation" or state == "bands":
        talk(scene)
    elif state == "diff":
        many = "".join(
            f"def check_{n}(client):\n    assert client.retry({n})\n\n\n" for n in range(6)
        )
        walk(scene.begin(), 3, last=("observing", "orienting", "deciding")).say("agent", THOUGHTS)
        scene.propose(
            fields=(("file", "src/http/retry.py"), ("change", "3 lines")),
            diffs=(("src/http/retry.py", BEFORE, AFTER + many),),
        )
    elif state == "request":
        walk(scene.begin(), 1, last=("observing", "orienting", "deciding"))
        scene.say("agent", "I need three files before I judge this.").ask()
    app = CockpitApp(still)
    async with app.run_test(size=SIZES[0]) as pilot:
        if scene.session_id:
            app.attach(scene.session_id)
        if state == "bands":
            await settled(pilot)
            await pilot.press("f3")
        ready = look if state in ("diff", "request") else settled
        await pictures(pilot, ready)


async def test_replay(still, scene, pictures):
    rows = await read_session_rows(still.store, talk(scene).session_id)
    app = ReplayApp(rows, scene.session_id, still.store)
    async with app.run_test(size=SIZES[0]) as pilot:
        await until(pilot, lambda: app.screen.position == len(rows))
        await pilot.press("left_square_bracket")
        await until(pilot, lambda: app.screen.position < len(rows))
        await pictures(pilot, calm)


async def test_stats(still, clock, pictures):
    three_days(still.store, clock)
    app = CockpitApp(still)
    async with app.run_test(size=SIZES[0]) as pilot:
        screen = await settled(pilot)
        screen.act("stats")
        await until(pilot, lambda: isinstance(app.screen, StatsScreen))
        await until(pilot, lambda: len(app.screen.body.views) == 16)
        await pictures(pilot, settled)


DIALOGS = {
    "help": "f1", "palette": "ctrl+p", "key_menu": "alt+h", "reject": "ctrl+x", "peek": "alt+w space",
}  # fmt: skip


async def test_dialogs(still, scene, pictures):
    to_decide(scene).advance("acting").edit()
    app = CockpitApp(still)
    async with app.run_test(size=(160, 45)) as pilot:
        app.attach(scene.session_id)
        await look(pilot)
        for name, keys in DIALOGS.items():
            await pilot.resize_terminal(160, 45)
            await look(pilot)
            await pilot.press(*keys.split())
            await until(pilot, lambda: len(app.screen_stack) > 1)
            await pictures(pilot, calm, name)
            await pilot.press("escape")
            await until(pilot, lambda: len(app.screen_stack) == 1)


async def test_packets(still, scene, pictures):
    known(scene)
    app = CockpitApp(still)
    async with app.run_test(size=SIZES[0]) as pilot:
        app.attach(scene.session_id)
        await settled(pilot)
        packet_actions.show_band_facts(screen_of(pilot).host, "situational")
        await until(pilot, lambda: isinstance(app.screen, BandFacts) and app.screen.list.rows)
        await pilot.press("u", "u", "j")
        await pictures(pilot, calm, "facts")
        await pilot.press("escape", "f8")
        await until(
            pilot, lambda: isinstance(app.screen, PacketDiffDialog) and app.screen.list.rows
        )
        await pictures(pilot, calm, "compared")


async def test_profile_proposal(still, scene, pictures):
    to_decide(scene).shift_attention()
    app = CockpitApp(still)
    async with app.run_test(size=SIZES[0]) as pilot:
        app.attach(scene.session_id)
        await pictures(pilot, show_proposal)
