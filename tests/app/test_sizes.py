"""The main states at five sizes, from 60×20 to 250×70: pictures in ``snapshots/``."""

from __future__ import annotations

import pytest
import pytest_textual_snapshot
from app_scenes import AFTER, BEFORE, THOUGHTS, Scene
from app_world import calm, look, settled, until
from chain_scenes import running
from chains.measures.chain_days import three_days
from wave_scenes import walk

from cockpit.app.application import CockpitApp
from cockpit.app.screens.replay_screen import ReplayApp, read_session_rows
from cockpit.app.screens.stats_screen import StatsScreen

pytestmark = pytest.mark.slow

SIZES = ((60, 20), (80, 24), (100, 30), (160, 45), (250, 70))


@pytest.fixture
def scene(still, project):
    return Scene(still.store, project)


@pytest.fixture
def pictures(snapshot):
    """Compare an app at every size with its pictures."""

    async def compare(pilot, ready):
        different = []
        for size in SIZES:
            await pilot.resize_terminal(*size)
            await until(pilot, lambda size=size: tuple(pilot.app.screen.size) == size)
            await ready(pilot)
            name = f"{size[0]}x{size[1]}"
            svg = pilot.app.export_screenshot()
            if svg != snapshot(
                name=name, extension_class=pytest_textual_snapshot.SVGImageExtension
            ):
                different.append(name)
        assert not different

    return compare


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
