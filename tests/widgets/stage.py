"""A bare screen for one widget, with the real stylesheet, and a record of what was posted."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import Any

import screens
from textual.app import App, ComposeResult
from textual.message import Message
from textual.pilot import Pilot
from textual.widget import Widget

import themes


class Stage(App[None]):
    """Shows the given widgets, and nothing of its own."""

    CSS_PATH = themes.STYLESHEET
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, *shown: Widget, theme: str = themes.DEFAULT) -> None:
        super().__init__()
        self._shown = shown
        self.posted: list[Message] = []
        for each in themes.THEMES:
            self.register_theme(each)
        self.theme = theme

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return themes.fallbacks(self.current_theme)

    def compose(self) -> ComposeResult:
        yield from self._shown

    def got(self, kind: type[Message]) -> list[Any]:
        """The messages of one kind, in the order in which they were posted."""
        return [each for each in self.posted if isinstance(each, kind)]

    @property
    def drawn(self) -> str:
        """The whole screen as text."""
        return "\n".join(strip.text for strip in self.screen._compositor.render_strips())

    @property
    def rows(self) -> list[str]:
        """The screen's lines without trailing spaces."""
        return [row.rstrip() for row in self.drawn.split("\n")]


async def settle(pilot: Pilot[None]) -> None:
    """Wait until streams are written and everything is painted."""
    await screens.rest(pilot)


@asynccontextmanager
async def staged(*shown: Widget, size: tuple[int, int] = (80, 24), theme: str = themes.DEFAULT):
    """Run a :class:`Stage`; yields its pilot."""
    app = Stage(*shown, theme=theme)
    seen: set[int] = set()

    def record(message: Message) -> None:
        if id(message) not in seen:
            seen.add(id(message))
            app.posted.append(message)

    async with app.run_test(size=size, message_hook=record) as pilot:
        await settle(pilot)
        yield pilot
