"""A program for a real terminal: shows widgets full of one text, one after the other, then ends.

Run as ``python widget_pty_app.py``; the text comes from the environment as JSON in TEXT. After each
widget stands a line with its name and the exit code of its app. ``raw`` is Textual's own Static, to show
that the test sees what gets through.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable

from textual.app import App, ComposeResult
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static
from widget_cases import WIDGETS

import themes

_FRAMES = 6


class ActionPreview(App[None]):
    """Fills the widget, paints a few frames, leaves."""

    CSS_PATH = themes.STYLESHEET

    def __init__(self, widget: Widget, fill: Callable[[], None]) -> None:
        super().__init__()
        self._widget = widget
        self._fill = fill
        for each in themes.THEMES:
            self.register_theme(each)
        self.theme = themes.DEFAULT

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return themes.fallbacks(self.current_theme)

    def compose(self) -> ComposeResult:
        yield self._widget

    def on_ready(self) -> None:
        self._fill()
        self._paint(_FRAMES)

    def _paint(self, frames: int) -> None:
        if frames and not self._exit:
            self.run_worker(self._next(frames), exit_on_error=True)
        else:
            self.exit()

    async def _next(self, frames: int) -> None:
        streams = [each for each in self.workers if each.group == "stream"]
        if streams:
            await self.workers.wait_for_complete(streams)
        self.refresh(layout=True)
        self.call_after_refresh(self._paint, frames - 1)


def _raw(text: str) -> tuple[Widget, Callable[[], None]]:
    return Static(Content(text)), lambda: None


def end_of(name: str, code: int | None) -> str:
    """The line that ends what a widget wrote."""
    return f"==== {name} ended with {code} ====\n"


def main() -> None:
    """Run an app for each widget."""
    text = json.loads(os.environ["TEXT"])
    for name, make in {**WIDGETS, "raw": _raw}.items():
        app = ActionPreview(*make(text))
        app.run()
        sys.stdout.write(end_of(name, app.return_code))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
