"""Replay: the live fold over a past session; it changes nothing."""

from __future__ import annotations

import pytest
from app_scenes import Scene, to_decide
from app_world import calm, until

from cockpit.app.projection.fold import State
from cockpit.app.screens.replay_screen import ReplayApp, ReplayScreen, read_session_rows, run_replay
from cockpit.core.clock import parse_time
from cockpit.core.errors import NotFound
from cockpit.store.journal import journal

pytestmark = pytest.mark.slow


@pytest.fixture
def scene(still, project):
    scene = to_decide(Scene(still.store, project)).say("agent", "It never resets.")
    Scene(still.store, project).begin("another")
    return scene.advance("acting").edit().decide("p-action", "approved")


async def test_every_place_shows_what_was_known_then(still, scene):
    rows = await read_session_rows(still.store, scene.session_id)
    assert {row.session_id for row in rows} == {scene.session_id}
    before = still.store.read_now(journal.last_seq)
    app = ReplayApp(rows, scene.session_id)
    async with app.run_test(size=(150, 42)) as pilot:
        screen = app.screen
        assert isinstance(screen, ReplayScreen)
        for keys, place in (
            ((), len(rows)),
            (("left",), len(rows) - 1),
            (("home",), 0),
            (("right", "right", "right"), 3),
            (("end",), len(rows)),
        ):
            await pilot.press(*keys)
            await until(pilot, lambda place=place: screen.position == place)
            await calm(pilot)
            then = State().fold(rows[:place])
            now = parse_time(then.at) if then.at else parse_time(rows[0].at)
            views = then.views(now, scene.session_id)
            shown = screen._panes.conversation.turns
            assert [(t.key, t.text, t.lines) for t in shown] == [
                (t.key, t.text, t.lines) for t in views.turns
            ]
            assert screen._panes.proposals.view == views.queue
            assert screen._panes.meter.view == views.meter
    assert still.store.read_now(journal.last_seq) == before


async def test_waves_are_places_to_go_to(still, scene):
    rows = await read_session_rows(still.store, scene.session_id)
    starts = [n for n, row in enumerate(rows, 1) if row.action == "wave.created"]
    app = ReplayApp(rows, scene.session_id)
    async with app.run_test(size=(150, 42)) as pilot:
        screen = app.screen
        await until(pilot, lambda: screen.position == len(rows))
        await pilot.press("[")
        await until(pilot, lambda: screen.position == starts[1])
        await pilot.press("[")
        await until(pilot, lambda: screen.position == starts[0])
        await pilot.press("]")
        await until(pilot, lambda: screen.position == starts[1])


async def test_space_plays_to_the_end(still, scene):
    rows = (await read_session_rows(still.store, scene.session_id))[:4]
    app = ReplayApp(rows, scene.session_id)
    async with app.run_test(size=(100, 30)) as pilot:
        screen = app.screen
        await until(pilot, lambda: screen.position == len(rows))
        await pilot.press("space")
        await until(pilot, lambda: screen.position < len(rows))
        await until(pilot, lambda: screen.position == len(rows))


async def test_keys_leave(still, scene):
    app = ReplayApp(await read_session_rows(still.store, scene.session_id), scene.session_id)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("f4", "f2", "q")
        await until(pilot, lambda: app._exit)


async def test_a_session_that_is_not_there_is_told(still):
    with pytest.raises(NotFound, match="No session s-no"):
        await run_replay(still.store, "s-no")
