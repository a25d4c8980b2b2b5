"""Replay: the live fold over a past session; it changes nothing."""

from __future__ import annotations

from functools import partial

import pytest
from app_scenes import Scene, to_decide
from app_world import calm, on_screen, settled, until
from packet_scenes import fact

from cockpit.app.screens.replay_screen import ReplayApp, ReplayScreen, read_session_rows, run_replay
from cockpit.app.state.replay import Replay
from cockpit.core.clock import parse_time
from cockpit.core.errors import NotFound
from cockpit.store.context import facts
from cockpit.store.journal import journal
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


async def test_every_place_shows_what_was_known_then_and_space_plays(still, scene, picture):
    """At a speed that keys change."""
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
            then = Replay(scene.session_id).fold(rows[:place])
            now = parse_time(then.at) if then.at else parse_time(rows[0].at)
            views = then.views(now)
            shown = screen._panes.conversation.turns
            assert [(t.key, t.text, t.lines) for t in shown] == [
                (t.key, t.text, t.lines) for t in views.turns
            ]
            assert screen._panes.proposals.view == views.queue
            assert screen._panes.meter.view == views.meter
            if place == len(rows) - 1:
                await picture(pilot, "replay")
        await pilot.press("minus", "minus", "minus")
        bar = screen.query_one(KeyBar)
        await until(pilot, lambda: "(1 rows/s)" in str([hint.label for hint in bar.hints]))
        await pilot.press("[")
        starts = [n for n, row in enumerate(rows, 1) if row.action == "wave.created"]
        await until(pilot, lambda: screen.position == starts[-1])
        await pilot.press(*["plus"] * 9, "space")
        await until(pilot, lambda: screen.position == len(rows) and not screen._playing)
    assert still.store.read_now(journal.last_seq) == before


async def test_replay_and_fork_inside_the_screen(still, scene):
    scene.advance("learning", "completed")
    async with on_screen(still, scene.session_id, size=(150, 42)) as (pilot, app, screen):
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


async def test_a_session_that_is_not_there_is_told(still):
    with pytest.raises(NotFound, match="No session s-no"):
        await run_replay(still.store, "s-none")
