"""The command palette: what is valid at this moment, sessions to follow, themes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from textual.command import CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.widgets import Input

from cockpit.app.dialogs.question import calm
from widgets.text.tone import DIM, line

if TYPE_CHECKING:
    from cockpit.app.screens.cockpit_screen import CockpitScreen

Command = tuple[str, str, Callable[[], object]]
_SESSIONS_MOST = 30


class Palette(CommandPalette):
    """The palette over the cockpit, with a cursor that stands still."""

    def on_mount(self) -> None:
        calm(self.query_one(Input))


class Commands(Provider):
    """Commands of the cockpit's screen or of one over tasks; none while a dialog is above it."""

    async def discover(self) -> Hits:
        for title, hint, run in self._commands(everything=False):
            yield DiscoveryHit(_drawn(title, hint), run, text=title)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for title, hint, run in self._commands(everything=True):
            score = matcher.match(title)
            if score > 0:
                # The matcher's own highlight parses markup, and titles are anybody's words.
                yield Hit(score, _drawn(title, hint), run, text=title)

    def _commands(self, *, everything: bool) -> Iterator[Command]:
        from cockpit.app.screens.backlog_screen import WorkScreen
        from cockpit.app.screens.cockpit_screen import CockpitScreen

        screen = self.screen
        if not isinstance(screen, CockpitScreen | WorkScreen):
            return
        moment = screen.moment
        for action in screen.actions:
            if action.palette and action.when(moment):
                yield action.title, action.key, partial(screen.act, action.id)
        if everything:
            yield from self._more(screen if isinstance(screen, CockpitScreen) else screen.main)

    def _more(self, screen: CockpitScreen) -> Iterator[Command]:
        for name in sorted(self.app.available_themes):
            yield f"Theme: {name}", "", partial(screen.cockpit.choose_theme, name)
        for key, name, hint in islice(screen.acts.followable(), _SESSIONS_MOST):
            yield f"Follow: {name}", hint, partial(screen.cockpit.attach, key)


def _drawn(title: str, hint: str) -> Content:
    return line(title, ("  " + hint if hint else "", DIM))
