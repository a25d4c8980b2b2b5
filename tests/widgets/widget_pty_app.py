"""A program for a real terminal: shows widgets full of one text, one after the other, then ends.

Run as ``python widget_pty_app.py``; the text comes from the environment as JSON in TEXT, and begins with a
mark of each widget's. After all of them stands :data:`END`, then what Textual's own Static lets through.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Mapping

from textual.app import App
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static
from widget_cases import WIDGETS

import themes

END = "==== all widgets ended with {} ===="
_FRAMES = 3
Makers = Mapping[str, Callable[[str], tuple[Widget, Callable[[], None]]]]


def mark_of(name: str) -> str:
    """The word that a widget's text begins with."""
    return f"S{[*WIDGETS, 'raw'].index(name):02}N"


class ActionPreview(App[None]):
    """Shows each widget alone, paints a few frames, leaves."""

    CSS_PATH = themes.STYLESHEET

    def __init__(self, makers: Makers, text: str) -> None:
        super().__init__()
        self._makers, self._text = makers, text
        for each in themes.THEMES:
            self.register_theme(each)
        self.theme = themes.DEFAULT

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return themes.fallbacks(self.current_theme)

    def on_ready(self) -> None:
        self.run_worker(self._show_all(), exit_on_error=True)

    async def _show_all(self) -> None:
        for name, make in self._makers.items():
            widget, fill = make(f"{mark_of(name)} {self._text}")
            await self.screen.mount(widget)
            fill()
            for _ in range(_FRAMES):
                streams = [each for each in self.workers if each.group == "stream"]
                if streams:
                    await self.workers.wait_for_complete(streams)
                painted = asyncio.Event()
                self.refresh(layout=True)
                self.call_after_refresh(painted.set)
                await painted.wait()
            await widget.remove()
        self.exit()


def _raw(text: str) -> tuple[Widget, Callable[[], None]]:
    return Static(Content(text)), lambda: None


def main() -> None:
    """Run an app for the widgets, and one for Textual's own."""
    text = json.loads(os.environ["TEXT"])
    app = ActionPreview(WIDGETS, text)
    app.run()
    sys.stdout.write(END.format(app.return_code))
    sys.stdout.flush()
    ActionPreview({"raw": _raw}, text).run()


if __name__ == "__main__":
    main()
