"""Driving the app in tests: waiting for a state instead of for a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import screens
from textual._compositor import LayoutUpdate
from textual.app import App
from textual.pilot import Pilot
from textual.strip import Strip

from cockpit.app.application import CockpitApp
from cockpit.app.screens.cockpit_screen import CockpitScreen

SIZES = ((60, 20), (80, 24), (100, 30), (160, 45), (250, 70))
"""The terminals that pictures are of: columns and rows."""
LOOKS = 1_000
NOTED = 50
"""Looks for the note that a proposal was drawn; some tests keep it from being armed."""


async def until(
    pilot: Pilot[int], true: Callable[[], object], *, looks: int = LOOKS, pause_s: float = 0.01
) -> None:
    """Let the app work until ``true`` and the header names the followed session.

    A state that never comes fails the test. Without the second condition a key that follows would be one
    that went down over another session's screen, which is held back.
    """
    for _ in range(looks):
        await pilot.pause()
        if true():
            break
        await asyncio.sleep(pause_s)
    else:
        raise AssertionError("it never came to that")
    for _ in range(NOTED):
        if _names_the_session(pilot.app):
            break
        await pilot.pause()
        await asyncio.sleep(pause_s)


def _names_the_session(app: App[int]) -> bool:
    """True where the session that is drawn is the followed one, or where no such screen is there."""
    if not isinstance(app, CockpitApp):
        return True
    screens = [screen for screen in app.screen_stack if isinstance(screen, CockpitScreen)]
    return not screens or screens[0].key_policy.session == app.session_id


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
    await until(pilot, lambda: app.session_id or app.welcome.was_read)
    screen.paint()
    await pilot.pause()
    await until(pilot, lambda: not app.welcome.log.is_reading and not screen._paint_due)
    for _ in range(NOTED):
        if _has_noted_what_is_drawn(screen):
            break
        await pilot.pause()
        await asyncio.sleep(0.01)
    await calm(pilot)
    return screen


def _has_noted_what_is_drawn(screen: CockpitScreen) -> bool:
    """True once the keys know of the proposal in view: it is armed half a second after that, not before."""
    front = screen.queue.front
    if front is None or screen.app.screen is not screen or not screen.panes.is_visible("proposals"):
        return True
    policy = screen.key_policy
    is_known = policy.front is not None and policy.front.digest == front.digest
    panel = screen.panes.proposals
    reading = panel.reading
    is_counted = reading.digest == front.digest and reading.is_whole == policy.is_read
    return is_known and is_counted and reading.lines > 0 and panel.armed == policy.is_armed


async def calm(pilot: Pilot[int]) -> None:
    """Wait until nothing is due and all of it is drawn."""
    await screens.rest(pilot)


def drawn(pilot: Pilot[int]) -> list[list[Strip]]:
    """What stands on the screen, whole, with what shines through from below a dialog."""
    app = pilot.app
    update = app.screen._compositor.render_update(
        full=True, screen_stack=app._background_screens, simplify=True
    )
    assert isinstance(update, LayoutUpdate)
    return [list(strips) for strips in update.strips]


async def look(pilot: Pilot[int]) -> CockpitScreen:
    """Wait until settled, then let the proposal be seen for a second."""
    screen = await settled(pilot)
    screen.host.engine.store.clock.advance(1)
    await settled(pilot)
    policy = screen.key_policy
    in_view = pilot.app.screen is screen and screen.panes.is_visible("proposals")
    is_late = policy.open is not None and (not policy.is_seen or policy.is_read > policy.is_armed)
    if in_view and is_late:
        # A late frame noted the proposal after the clock had moved: it was seen for a second all the same.
        policy._visible_since -= 1
        policy._read_since -= 1
        screen._update_armed()
        await settled(pilot)
    return screen


async def show_proposal(pilot: Pilot[int]) -> CockpitScreen:
    """Wait until settled; in one column, go to the proposal that waits, as Enter does."""
    screen = await settled(pilot)
    if not screen.panes.is_visible("proposals"):
        await pilot.press("enter")
        await until(pilot, lambda: screen.panes.is_visible("proposals"))
    return await look(pilot)
