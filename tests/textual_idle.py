"""Let a pilot wait until its app has nothing left to do, in place of sleeping until the processor rests.

Textual's pilot sleeps 20 ms for each key and each pause, and has each widget answer a message: more than the
app does meanwhile, and a guess on a busy machine. Here it looks: at the event loop's own list of what can
run, at the queues of the widgets, at what was handed to threads. What the screen would draw with its next
sixtieth of a second it draws at once.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import aiosqlite
import textual.app
import textual.pilot
import textual.screen
from textual._context import active_app
from textual.app import App
from textual.message_pump import MessagePump
from textual.pilot import Pilot, WaitForScreenTimeout
from textual.screen import Screen

ROUNDS = 50
"""The most pictures that one wait lays out: an app that never rests is for the test to stop."""
UNSEEN_S = 1.0
"""How often a screen whose pilot does not wait lays out what has changed, in seconds."""
THREADS_S = 0.02
"""How long to wait for threads that give no sign, in seconds: some wait for what never comes."""
BUSY_S = 0.002
"""Between two looks at a widget that waits for a process or a time, in seconds."""


def install() -> None:
    """Make the pilots of this process look at what is left to do."""
    textual.app.wait_for_idle = _wait_for_idle
    textual.pilot.wait_for_idle = _wait_for_idle
    textual.screen.UPDATE_PERIOD = UNSEEN_S
    Pilot._wait_for_screen = wait_for_screen
    asyncio.wrap_future = _wrap_future
    asyncio.futures.wrap_future = _wrap_future
    aiosqlite.Connection._execute = _execute


async def work(app: App[Any]) -> None:
    """Let the app do all that it can do now, and lay out what has changed."""
    for _ in range(ROUNDS):
        await _run_ready()
        if not await _wait_for_threads() and not _lay_out(app):
            return


def _lay_out(app: App[Any]) -> bool:
    """Do what the screens would do with their next sixtieth of a second; False if that is nothing."""
    if not app._running or not app._screen_stack:
        return False
    if app._resize_timer is not None:
        with app._context():
            app._check_resize()
        return True
    screens = [each for each in app._screen_stack if _is_due(each)]
    for screen in screens:
        with screen._context():
            screen._on_timer_update()
    return bool(screens)


def _is_due(screen: Screen[Any]) -> bool:
    """True if the screen waits for its next sixtieth of a second."""
    timer = screen._Screen__update_timer  # type: ignore[attr-defined]
    return screen._running and timer is not None and timer._active.is_set()


async def _run_ready() -> None:
    """Let run what can run, until nothing can."""
    loop: Any = asyncio.get_running_loop()
    end = time.monotonic() + 1
    while True:
        await asyncio.sleep(0)
        if not loop._ready or time.monotonic() > end:
            return


_pending: WeakKeyDictionary[asyncio.AbstractEventLoop, WeakSet[asyncio.Future[Any]]]
_pending = WeakKeyDictionary()
"""What each event loop's threads were asked for."""


def _remember(future: asyncio.Future[Any]) -> None:
    _pending.setdefault(future.get_loop(), WeakSet()).add(future)


async def _wait_for_threads() -> bool:
    """Wait until a thread has answered; False if none was asked, or none answers soon."""
    asked = _pending.get(asyncio.get_running_loop(), ())
    waiting = [each for each in asked if not each.done()]
    for each in set(asked) - set(waiting):
        asked.discard(each)
    if not waiting:
        return False
    answered, _ = await asyncio.wait(
        waiting, timeout=THREADS_S, return_when=asyncio.FIRST_COMPLETED
    )
    return bool(answered)


_wrap_before = asyncio.wrap_future
_execute_before = aiosqlite.Connection._execute


def _wrap_future(future: Any, *, loop: asyncio.AbstractEventLoop | None = None) -> Any:
    wrapped = _wrap_before(future, loop=loop)
    _remember(wrapped)
    return wrapped


async def _execute(connection: aiosqlite.Connection, *words: Any, **options: Any) -> Any:
    future = asyncio.get_running_loop().create_future()
    _remember(future)
    try:
        return await _execute_before(connection, *words, **options)
    finally:
        future.cancel()


async def _wait_for_idle(min_sleep: float = 0, max_sleep: float = 1) -> None:
    await work(active_app.get())


async def wait_for_screen(pilot: Pilot[Any], timeout: float = 30.0) -> bool:
    """Wait until the widgets of the current screen have no message left, and none is busy with one."""
    app = pilot.app
    try:
        pumps = [app, *app.screen.walk_children(with_self=True)]
    except Exception:
        return False
    end = time.monotonic() + timeout
    while True:
        await _run_ready()
        if app._exception_event.is_set():
            return False
        pumps = [each for each in pumps if _is_busy(each)]
        if not pumps:
            return True
        if time.monotonic() > end:
            raise WaitForScreenTimeout(f"These widgets never came to rest: {pumps}")
        if not _lay_out(app) and not await _wait_for_threads():
            await asyncio.sleep(BUSY_S)


def _is_busy(pump: MessagePump) -> bool:
    if pump._closing or pump._closed:
        return False
    queue: Any = pump._message_queue
    return bool(queue.values) or not queue.ready_event._waiters
