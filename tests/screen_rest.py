"""Let tests of screens wait until nothing is left to do, instead of for some time, and do no work twice.

Textual's pilot takes a program that uses little processor time for one that is done. On a busy machine the
program may just not have had its turn, and a picture is taken of a screen that is not drawn yet. Here the
pilot looks at what is left to do: nothing depends on how long anything takes.

The screen is drawn whenever the pilot rests, not for each of the sixty frames of a second in between, as on a
terminal that is slow. A stylesheet is read once for all apps that have the same theme.
"""

from __future__ import annotations

import asyncio
import weakref
from concurrent.futures import Future
from typing import Any

import textual.app
import textual.pilot
from rich.console import Console
from textual._context import active_app
from textual.app import App
from textual.cache import LRUCache
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.geometry import Size
from textual.screen import Screen

LOOK_S = 0.002
"""Seconds between two looks while a thread works or a timer runs."""
DUE_S = 0.1
"""A timer that runs once and for no longer than this is waited for: it draws what has changed."""
PATIENCE_S = 60.0
UPDATES = 60
"""So often the screen may be laid out and drawn before it rests.

In a terminal of a few cells some widgets of Textual never come to rest: a scroll bar takes the place for
which it is needed, and goes, and comes. An app in such a terminal is drawn by its own timer.
"""
_restless: weakref.WeakKeyDictionary[App[Any], Size] = weakref.WeakKeyDictionary()

_in_threads: weakref.WeakSet[asyncio.Future[Any]] = weakref.WeakSet()
"""What the event loop awaits of other threads: reads and writes of stores, ``to_thread``."""


async def rest(app: App[Any]) -> None:
    """Wait until the app has nothing left to do before the user or the world does something.

    Then no callback is ready to run, so every widget has handled its messages; what changed is laid out and
    drawn; no thread works for the app; nothing moves; and no timer will draw soon.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + PATIENCE_S
    updates = 0
    while loop.time() < deadline:
        await asyncio.sleep(0)
        if _has_ended(app):
            return
        if loop._ready:  # type: ignore[attr-defined]
            continue
        if (updates < UPDATES and _restless.get(app) != app.size) and _update_screen(app):
            updates += 1
            if updates == UPDATES:
                _restless[app] = app.size
            continue
        if not _will_change(app, loop):
            return
        await asyncio.sleep(LOOK_S)
    raise AssertionError(f"The screen did not come to rest within {PATIENCE_S:.0f} s")


def install() -> None:
    """Make Textual's pilot wait this way, in this process."""
    if Screen._compositor_refresh is _draw_later:
        return
    Screen._compositor_refresh = _draw_later
    Stylesheet._parse_rules = _parse_rules
    Console.export_svg = _export_svg
    textual.app.wait_for_idle = _wait_for_idle
    textual.pilot.wait_for_idle = _wait_for_idle
    textual.pilot.Pilot._wait_for_screen = _wait_for_screen
    asyncio.wrap_future = asyncio.futures.wrap_future = _wrap_future


def _has_ended(app: App[Any]) -> bool:
    return app._exit or app._exception is not None or not app._running or not app._screen_stack


def _update_screen(app: App[Any]) -> bool:
    """Lay out and draw what has changed, if something has, without waiting for the next frame."""
    screen = app.screen
    due = (
        screen._layout_required
        or screen._scroll_required
        or screen._repaint_required
        or screen._recompose_required
        or screen._dirty_widgets
        or screen._callbacks
    )
    if app._batch_count or not screen._running:
        return False
    if due:
        screen._on_timer_update()
    elif screen in _undrawn:
        _undrawn.discard(screen)
        _draw(screen)
    else:
        return False
    return True


def _will_change(app: App[Any], loop: asyncio.AbstractEventLoop) -> bool:
    if app._batch_count or app._animator._animations or app._animator._scheduled:
        return True
    if any(not each.done() and each.get_loop() is loop for each in list(_in_threads)):
        return True
    return any(
        timer._repeat is not None
        and timer._interval <= DUE_S
        and timer._task is not None
        and not timer._task.done()
        for pump in (app, *app._registry)
        for timer in pump._timers
    )


async def _wait_for_idle(min_sleep: float = 0.0, max_sleep: float = 0.0) -> None:
    await rest(active_app.get())


async def _wait_for_screen(pilot: textual.pilot.Pilot[Any], timeout: float = 0.0) -> bool:
    await rest(pilot.app)
    return pilot.app._exception is None


_wrap_future_before = asyncio.wrap_future


def _wrap_future(
    future: Future[Any] | asyncio.Future[Any], *, loop: asyncio.AbstractEventLoop | None = None
) -> asyncio.Future[Any]:
    wrapped = _wrap_future_before(future, loop=loop)
    _in_threads.add(wrapped)
    return wrapped


_undrawn: weakref.WeakSet[Screen[Any]] = weakref.WeakSet()
_draw = Screen._compositor_refresh


def _draw_later(screen: Screen[Any]) -> None:
    app = screen.app
    if screen is app.screen and app.is_headless and not app.is_inline:
        _undrawn.add(screen)
        screen._dirty_widgets.clear()
        app._update_mouse_over(screen)
    else:
        _draw(screen)


_rules: LRUCache[tuple[Any, ...], list[RuleSet]] = LRUCache(4_096)
_themes: dict[frozenset[tuple[str, str]], int] = {}
_parse_rules_before = Stylesheet._parse_rules


def _parse_rules(
    stylesheet: Stylesheet,
    css: str,
    read_from: tuple[str, str],
    is_default_rules: bool = False,
    tie_breaker: int = 0,
    scope: str = "",
) -> list[RuleSet]:
    variables = stylesheet._variables
    theme = _themes.setdefault(frozenset(variables.items()), len(_themes))
    key = (css, read_from, is_default_rules, tie_breaker, scope, theme)
    rules = _rules.get(key)
    if rules is None:
        rules = _parse_rules_before(
            stylesheet, css, read_from, is_default_rules, tie_breaker, scope
        )
        _rules[key] = rules
    return rules


_export_svg_before = Console.export_svg


def _export_svg(console: Console, **options: Any) -> str:
    """Name the classes of styles alike in all pictures; their usual name is a checksum of the picture."""
    return _export_svg_before(console, **{"unique_id": "terminal-0", **options})
