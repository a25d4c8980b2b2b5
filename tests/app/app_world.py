"""Driving the app in tests: waiting for a state instead of for a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from textual.pilot import Pilot

from cockpit.app.application import CockpitApp
from cockpit.app.screens.cockpit_screen import CockpitScreen

LOOKS = 1_000


async def until(pilot: Pilot[int], true: Callable[[], object]) -> None:
    """Let the app work until ``true``; a state that never comes fails the test."""
    for _ in range(LOOKS):
        await pilot.pause()
        if true():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never came to that")


def screen_of(pilot: Pilot[int]) -> CockpitScreen:
    """The cockpit's own screen, also below a dialog."""
    app = pilot.app
    assert isinstance(app, CockpitApp)
    for screen in app.screen_stack:
        if isinstance(screen, CockpitScreen):
            return screen
    raise AssertionError("there is no cockpit's screen")


async def settled(pilot: Pilot[int]) -> CockpitScreen:
    """Wait until what the journal says stands on the screen."""
    screen = screen_of(pilot)
    app = screen.host
    store = app.engine.store
    last = store.read_now(lambda c: c.execute("SELECT seq FROM journal_head").fetchone()[0])
    await until(pilot, lambda: app.feed.ready and app.feed.state.seq >= last)
    await until(pilot, lambda: not app.runs.any_running)
    screen.paint()
    await calm(pilot)
    return screen


async def calm(pilot: Pilot[int]) -> None:
    """Wait until workers are done (Markdown, diffs) and nothing is left to draw."""
    await until(pilot, lambda: all(worker.is_finished for worker in pilot.app.workers))


async def look(pilot: Pilot[int]) -> CockpitScreen:
    """Wait until settled, then let the proposal be seen for a second."""
    screen = await settled(pilot)
    screen.host.engine.store.clock.advance(1)
    return await settled(pilot)
