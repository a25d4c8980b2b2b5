"""Replay: the live fold over a past session; it changes nothing."""

from __future__ import annotations

from functools import partial

import pytest
from app_scenes import Scene, to_decide
from app_world import calm, settled, until
from packet_scenes import fact

from cockpit.app.application import CockpitApp
from cockpit.app.projection.fold import State
from cockpit.app.screens.replay_screen import ReplayApp, ReplayScreen, read_session_rows, run_replay
from cockpit.core.clock import parse_time
from cockpit.core.errors import NotFound
from cockpit.store.context import facts
from cockpit.store.journal import journal
from cockpit.store.sessions import sessions
from widgets.frame.footer import KeyBar

pytestmark = pytest.mark.slow


@pytest.fixture
def scene(still, project):
    scene = to_decide(Scene(still.store, project)).say("agent", "It never resets.")
    Scene(still.store, project).begin("another")
    read = partial(
        facts.record, session_id=scene.session_id, wave_id=f"{scene.session_id}-w1", ordinal=1,
        pinned_now="2026-01-01T12:00:00.000000Z", facts=[fact(1)],
    )  # fmt: skip
    still.store.write_now(read)
    return scene.advance("acting").edit().decide("p-action", "approved")


async def test_every_place_shows_what_was_known_then(still, scene):
    rows = await read_session_rows(still.store, scene.session_id)
    assert {row.session_id for row in rows} == {scene.session_id}
    before = still.store.read_now(journal.last_seq)
    app = ReplayApp(rows, scene.session_id, still.store)
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
    app = ReplayApp(rows, scene.session_id, still.store)
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
    app = ReplayApp(rows, scene.session_id, still.store)
    async with app.run_test(size=(100, 30)) as pilot:
        screen = app.screen
        await until(pilot, lambda: screen.position == len(rows))
        await pilot.press("space")
        await until(pilot, lambda: screen.position < len(rows))
        await until(pilot, lambda: screen.position == len(rows))


async def test_the_speed_changes_and_a_fork_begins_where_one_looks(still, scene):
    scene.advance("learning", "completed").wave("observing")
    rows = await read_session_rows(still.store, scene.session_id)
    app = ReplayApp(rows, scene.session_id, still.store)
    async with app.run_test(size=(150, 42)) as pilot:
        screen = app.screen
        await until(pilot, lambda: screen.position == len(rows))
        assert screen._timeline.marks == tuple(
            n for n, row in enumerate(rows, 1) if row.action == "wave.created"
        )
        await pilot.press("minus", "minus", "minus")
        assert "(1 rows/s)" in str([hint.label for hint in screen.query_one(KeyBar).hints])
        await pilot.press("space")
        await until(pilot, lambda: screen.position < len(rows))
        await pilot.press(*["plus"] * 9)
        await until(pilot, lambda: screen.position == len(rows) and not screen._playing)
        await pilot.press("home")
        await until(pilot, lambda: screen.position == 0)
        await pilot.press("f")
        await until(pilot, lambda: app._notifications)
        assert len(still.store.read_now(sessions.select_recent)) == 2
        ended = [n for n, row in enumerate(rows, 1) if row.action == "wave.completed"]
        await pilot.press("end")
        await until(pilot, lambda: screen.position == len(rows))
        await pilot.press("f")
        await until(pilot, lambda: len(still.store.read_now(sessions.select_recent)) == 3)
        assert len(ended) == 2
    newest = still.store.read_now(sessions.select_recent)[0]
    assert (newest.title, newest.status) == ("#24 (fork)", "waiting")
    log = await read_session_rows(still.store, newest.session_id)
    (forked,) = [row.detail for row in log if row.action == "session.forked"]
    assert (forked.source, forked.wave) == (scene.session_id, 2)


async def test_replay_and_fork_inside_the_screen(still, scene):
    scene.advance("learning", "completed")
    app = CockpitApp(still)
    async with app.run_test(size=(150, 42)) as pilot:
        app.attach(scene.session_id)
        screen = await settled(pilot)
        screen.act("replay")
        await until(pilot, lambda: isinstance(app.screen, ReplayScreen))
        await until(pilot, lambda: app.screen.position == len(app.screen._rows))
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is screen)
        screen.act("replay")
        await until(pilot, lambda: isinstance(app.screen, ReplayScreen))
        await until(pilot, lambda: app.screen.position == len(app.screen._rows))
        await pilot.press("f")
        await until(pilot, lambda: app.screen is screen and app.session_id != scene.session_id)
        await settled(pilot)
        assert app.session.title == "#24 (fork)"
        texts = [turn.text for turn in screen.panes.conversation.turns]
        assert "It never resets." in texts


async def test_keys_leave(still, scene):
    app = ReplayApp(
        await read_session_rows(still.store, scene.session_id), scene.session_id, still.store
    )
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("f4", "f2", "q")
        await until(pilot, lambda: app._exit)


async def test_a_session_that_is_not_there_is_told(still):
    with pytest.raises(NotFound, match="No session s-no"):
        await run_replay(still.store, "s-no")
