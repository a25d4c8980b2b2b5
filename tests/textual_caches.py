"""Let the apps of tests share what Textual works out for each of them anew, and draw only for somebody.

A stylesheet is parsed once for all apps whose themes give its variables the same values. A frame is drawn
when a test looks, and the last one. Without a terminal nobody could see those in between, whose number is
one of chance.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import textual_idle
import textual_shortcuts
from rich.console import Console
from rich.segment import Segment
from textual.app import App
from textual.cache import FIFOCache, LRUCache
from textual.css.model import RuleSet
from textual.css.styles import RulesMap, Styles
from textual.css.stylesheet import Stylesheet
from textual.dom import DOMNode
from textual.pilot import Pilot
from textual.screen import Screen
from textual.strip import Strip


def install() -> None:
    """Make Textual's stylesheets and pictures of this process share their work, and let frames wait."""
    if Stylesheet._parse_rules is _parse_rules:
        return
    share_stylesheets()
    textual_shortcuts.install()
    Stylesheet.replace_rules = classmethod(_replace_rules)
    Styles.refresh = _refresh
    Strip.__init__ = _begin_strip
    Strip.__getattr__ = _add_cache
    Console.export_svg = _export_svg
    Screen._compositor_refresh = _owe_frame
    textual_idle.install()
    Pilot.pause = _pause
    App._shutdown = _shut_down


def share_stylesheets() -> None:
    """Let the apps of this process share what they have parsed; nothing else of them is another."""
    Stylesheet._parse_rules = _parse_rules
    # Called a million times: what it was, without a call of Python.
    RuleSet.__hash__ = object.__hash__


_rules: LRUCache[tuple[Any, ...], list[RuleSet]] = LRUCache(4_096)
_names: dict[str, tuple[str, ...]] = {}
_NAME = re.compile(r"\$([a-zA-Z0-9_-]+)")
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
    names = _names.get(css)
    if names is None:
        names = _names[css] = tuple(sorted(set(_NAME.findall(css))))
    used: tuple[Any, ...] = tuple(variables.get(name) for name in names)
    if any("$" in value for value in used if value):
        used = tuple(sorted(variables.items()))  # a value that depends on others
    key = (css, read_from, is_default_rules, tie_breaker, scope, used)
    rules = _rules.get(key)
    if rules is None:
        rules = _parse_rules_before(
            stylesheet, css, read_from, is_default_rules, tie_breaker, scope
        )
        _rules[key] = rules
    return rules


_replace_rules_before = Stylesheet.replace_rules.__func__
_refresh_before = Styles.refresh
_refreshes: dict[int, set[tuple[tuple[str, bool], ...]]] = {}
"""The refreshes that the new rules of a node ask for, often the same ones, by the ``id`` of its styles."""


def _replace_rules(
    sheets: type[Stylesheet], node: DOMNode, rules: RulesMap, animate: bool = False
) -> None:
    """Refresh a node, and all below it, once for all of its rules that have changed."""
    styles = node.styles.base
    _refreshes[id(styles)] = set()
    try:
        textual_shortcuts.replace_rules(_replace_rules_before, sheets, node, rules, animate)
    finally:
        owed = _refreshes.pop(id(styles))
    for options in owed:
        _refresh_before(styles, **dict(options))


def _refresh(styles: Styles, **options: bool) -> None:
    owed = _refreshes.get(id(styles))
    if owed is None:
        _refresh_before(styles, **options)
    else:
        owed.add(tuple(sorted(options.items())))


_strip_caches = {
    "_divide_cache": 4,
    "_crop_cache": 16,
    "_style_cache": 16,
    "_filter_cache": 4,
    "_line_length_cache": 4,
    "_crop_extend_cache": 4,
    "_offsets_cache": 4,
}


def _begin_strip(strip: Strip, segments: Iterable[Segment], cell_length: int | None = None) -> None:
    """Begin a strip without its seven caches: of most strips none is used, or one."""
    strip._segments = list(segments)
    strip._cell_length = cell_length
    strip._render_cache = strip._link_ids = strip._cell_count = None


def _add_cache(strip: Strip, name: str) -> FIFOCache[Any, Any]:
    if name not in _strip_caches:
        raise AttributeError(name)
    cache: FIFOCache[Any, Any] = FIFOCache(_strip_caches[name])
    setattr(strip, name, cache)
    return cache


_export_svg_before = Console.export_svg


def _export_svg(console: Console, **options: Any) -> str:
    """Name the classes of styles alike in all pictures; their usual name is a checksum of the picture."""
    return _export_svg_before(console, **{"unique_id": "terminal-0", **options})


changes: WeakKeyDictionary[App[Any], int] = WeakKeyDictionary()
"""How often each app had a new frame to draw."""
_owing: WeakSet[Screen[Any]] = WeakSet()
_draw_frame = Screen._compositor_refresh
_shut_down_before = App._shutdown


def _owe_frame(screen: Screen[Any]) -> None:
    app = screen.app
    if not app.is_headless or screen is not app.screen:
        _draw_frame(screen)
        return
    changes[app] = changes.get(app, 0) + 1
    _owing.add(screen)
    screen._dirty_widgets.clear()
    app._update_mouse_over(screen)


async def _shut_down(app: App[Any]) -> None:
    """Draw the last frame, which must be possible although no test may look at it."""
    try:
        draw(app)
    finally:
        await _shut_down_before(app)


def draw(app: App[Any]) -> None:
    """Draw the frame that the app owes, as a terminal would see it: what has changed since the last one."""
    if app.is_headless and app._running and app._screen_stack and app.screen in _owing:
        _owing.discard(app.screen)
        _draw_frame(app.screen)


async def rest(pilot: Pilot[Any]) -> None:
    """Wait until the app has nothing left to do, and its workers nothing either."""
    while True:
        await textual_idle.wait_for_screen(pilot)
        await textual_idle.work(pilot.app)
        if not len(pilot.app.workers):
            break
        await pilot.app.workers.wait_for_complete()


async def _pause(pilot: Pilot[Any], delay: float | None = None) -> None:
    await textual_idle.wait_for_screen(pilot)
    if delay is not None:
        await asyncio.sleep(delay)
    await textual_idle.work(pilot.app)
