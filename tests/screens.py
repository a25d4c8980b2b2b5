"""Wait until an app of Textual has nothing left to do, and see that it has drawn all of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

from textual.app import App
from textual.message_pump import MessagePump
from textual.pilot import Pilot
from textual.timer import Timer
from textual.widget import Widget

PATIENCE_S = 60.0
LOOK_S = 0.03
"""Seconds between two looks. A pause of the pilot sends a message to every widget: it is no way to wait."""


async def rest(
    pilot: Pilot[Any],
    patience_s: float = PATIENCE_S,
    *,
    list_more: Callable[[App[Any]], Iterable[object]] = lambda _: (),
) -> None:
    """Wait until the app has no message, no worker, no timer that ends, and no frame that is due.

    Timers that repeat do not count: they ask for something, or draw, or do nothing. ``list_more`` lists what
    the app has to do that Textual does not know, such as its own tasks.
    """

    def find_due() -> object:
        return next(chain(list_due(pilot.app), list_more(pilot.app)), None)

    end = time.monotonic() + patience_s
    while True:
        await pilot.pause()
        if find_due() is None:
            return
        while (due := find_due()) is not None:
            assert time.monotonic() < end, f"the screen never came to rest: {due}"
            await asyncio.sleep(LOOK_S)


def list_due(app: App[Any]) -> Iterator[object]:
    """Yield what the app has yet to do."""
    if not app._running or not app.screen_stack:
        return
    yield from (worker for worker in app.workers if not worker.is_finished)
    yield from app.animator._animations
    yield from app.animator._scheduled
    if app._batch_count:
        yield app
    for screen in app.screen_stack:
        yield from _list_due_of(screen)
        is_shown = screen is app.screen
        if is_shown and (screen._dirty_widgets or screen._callbacks or _is_to_be_drawn(screen)):
            yield screen
        if is_shown and (_is_being_made(screen) or screen.outer_size != app.size):
            yield screen  # the terminal's new size is still on its way
        for child in screen.walk_children():
            for widget in (child, *_list_scrollbars(child)):
                yield from _list_due_of(widget)
                if is_shown and _is_being_made(widget):
                    yield widget
                if (
                    is_shown
                    and widget.is_running
                    and not widget._closing
                    and _is_to_be_drawn(widget)
                ):
                    # Marked before its messages ran, a widget waits for the next message that it gets.
                    widget.check_idle()
                    yield widget
    yield from _list_due_of(app)


def _list_scrollbars(widget: Any) -> list[Widget]:
    """The scrollbars of a widget, which are none of its children."""
    bars = (getattr(widget, f"_{way}_scrollbar", None) for way in ("vertical", "horizontal"))
    return [bar for bar in bars if bar is not None]


def _is_being_made(widget: Widget) -> bool:
    """Whether it is composed and mounted only now: until then it has no queue that would say so."""
    return not (widget._is_mounted or widget._closing or widget._closed)


def _is_to_be_drawn(widget: Widget) -> bool:
    return (
        widget._layout_required
        or widget._repaint_required
        or widget._scroll_required
        or widget._recompose_required
        or widget._refresh_styles_required
    )


def _list_due_of(pump: MessagePump) -> Iterator[object]:
    if not pump._running or pump._closing or pump._closed:
        return
    if pump.message_queue_size or pump._pending_message is not None or pump._next_callbacks:
        yield pump
    yield from (each for each in pump._timers if each._repeat is not None and _runs(each))


def _runs(timer: Timer) -> bool:
    return timer._task is not None and not timer._task.done()
