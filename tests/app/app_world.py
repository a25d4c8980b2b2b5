"""Driving the app in tests: waiting for a state instead of for a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import screens
from textual import events
from textual._compositor import LayoutUpdate
from textual.app import App
from textual.pilot import Pilot
from textual.strip import Strip

from cockpit.app.application import CockpitApp
from cockpit.app.deciding_screen import DecidingScreen
from cockpit.app.screens.cockpit_screen import CockpitScreen
from cockpit.app.screens.lists.list_screen import ListScreen
from cockpit.loop.runtime import Runtime
from cockpit.store.sessions import proposals

SNAPSHOTS = Path(__file__).resolve().parents[2] / "snapshots"
SIZES = ((60, 20), (80, 24), (100, 30), (120, 36), (160, 45), (250, 70))
"""The terminals that the main states are drawn on: columns and rows."""


@asynccontextmanager
async def on_screen(
    runtime: Runtime,
    session_id: str = "",
    *,
    size: tuple[int, int] = (150, 42),
    ready: Callable[[Pilot[int]], Awaitable[CockpitScreen]] | None = None,
) -> AsyncIterator[tuple[Pilot[int], CockpitApp, CockpitScreen]]:
    """Run the cockpit over ``runtime``, following a session, until it is settled, or ``ready``."""
    app = CockpitApp(runtime)
    async with app.run_test(size=size) as pilot:
        if session_id:
            app.attach(session_id)
        yield pilot, app, await (ready or settled)(pilot)


async def until(pilot: Pilot[int], true: Callable[[], object]) -> None:
    """Let the app work until ``true``, the screen on top is there, and the header names the followed session.

    Without the other conditions a key that follows would be pressed before the screen has its focus, or over
    another session's screen, which is held back.
    """
    end = time.monotonic() + screens.PATIENCE_S
    while True:
        await pilot.pause()
        if true() and _takes_keys(pilot.app):
            return
        while not (true() and _takes_keys(pilot.app)):
            assert time.monotonic() < end, "it never came to that"
            await asyncio.sleep(screens.LOOK_S)


def _takes_keys(app: App[int]) -> bool:
    """True where a key reaches what is drawn: the screen on top is mounted, and draws what is followed."""
    if app._exit or not app.screen_stack:
        return True
    return app.screen._is_mounted and _names_the_session(app)


def _names_the_session(app: App[int]) -> bool:
    """True where the session that is drawn is the followed one, or where no such screen is there."""
    if not isinstance(app, CockpitApp) or app._exit:
        return True
    shown = [screen for screen in app.screen_stack if isinstance(screen, CockpitScreen)]
    return not shown or shown[0].key_policy.session == app.session_id


def screen_of(pilot: Pilot[int]) -> CockpitScreen:
    """The cockpit's own screen, also below a dialog."""
    for screen in pilot.app.screen_stack:
        if isinstance(screen, CockpitScreen):
            return screen
    raise AssertionError("there is no cockpit's screen")


async def write(pilot: Pilot[int], text: str, *keys: str) -> None:
    """Paste ``text`` into what has the focus, then press ``keys``.

    A letter that is pressed is drawn by itself, in a frame or two: a word takes as long as a start does.
    """
    pilot.app.post_message(events.Paste(text))
    await pilot.press(*keys) if keys else await pilot.pause()


async def settled(pilot: Pilot[int]) -> CockpitScreen:
    """Wait until the screen draws all that is in the journal."""
    screen = screen_of(pilot)
    app = screen.host
    last = app.engine.store.read_now(
        lambda c: c.execute("SELECT seq FROM journal_head").fetchone()[0]
    )

    def is_told() -> bool:
        return (
            app.feed.ready
            and app.feed.state.seq >= last
            and not app.runs.any_running
            and bool(app.session_id or app.welcome.was_read)
            and _names_the_session(pilot.app)
        )

    if not is_told():
        await until(pilot, is_told)
    await calm(pilot)
    return screen


async def calm(pilot: Pilot[int]) -> None:
    """Wait until nothing is due and all of it is drawn."""
    await screens.rest(pilot, list_more=_list_due_here)


def _list_due_here(app: App[Any]) -> Iterator[object]:
    """Yield what cockpit reads and draws by itself: its tasks, its lists, and a proposal that is armed."""
    for screen in app.screen_stack:
        if isinstance(screen, ListScreen) and (screen._reading or screen._reading_detail):
            yield screen
        if isinstance(screen, DecidingScreen) and screen._painted and not _is_noted(screen):
            yield screen
    if isinstance(app, CockpitApp) and app._main is not None:
        yield from (task for task in app._tasks if not _follows(task))
        yield from app.feed._reading.values()
        if app.welcome.log.is_reading:
            yield app.welcome


def _is_noted(screen: DecidingScreen) -> bool:
    """Whether the keys know of the proposal that is drawn, and the panel whether it is armed.

    A tab that turned after its frame was noted is noted with the next frame, within a second.
    """
    policy, panel, front = screen.key_policy, screen.panel, screen.drawn_front
    if screen._paint_due or (policy.is_armed and not panel.armed):
        return False
    if front is None or not screen.is_on_top or not screen.is_showing:
        return True
    is_front = policy.front is not None and policy.front.digest == front.digest
    return is_front and policy.is_read >= panel.reading.is_whole


def _follows(task: asyncio.Task[None]) -> bool:
    """Whether a task runs as long as the app does."""
    coroutine = task.get_coro()
    return coroutine is not None and coroutine.__qualname__ == "JournalFeed.run"


def drawn(pilot: Pilot[int]) -> list[list[Strip]]:
    """The whole screen, with what shines through from below a dialog."""
    app = pilot.app
    update = app.screen._compositor.render_update(
        full=True, screen_stack=app._background_screens, simplify=True
    )
    assert isinstance(update, LayoutUpdate)
    return [list(strips) for strips in update.strips]


def text_of(app: App[Any]) -> str:
    """The text of the screen on top, line by line."""
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


def whole_text(pilot: Pilot[int]) -> str:
    """The text of the whole screen, also of what a dialog does not cover."""
    return "\n".join("".join(strip.text for strip in row) for row in drawn(pilot))


def status_of(runtime: Runtime, proposal_id: str) -> str:
    return runtime.store.read_now(lambda c: proposals.load(c, proposal_id)).status


async def look(pilot: Pilot[int]) -> CockpitScreen:
    """Wait until settled, then let the proposal be seen for a second."""
    screen = await settled(pilot)
    screen.host.engine.store.clock.advance(1)
    screen.schedule_paint()  # its age is drawn once in each second of the machine's
    return await settled(pilot)
