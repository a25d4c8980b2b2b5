"""The command palette: the actions that are valid now, sessions to follow, and themes.

The palette lists the commands of any screen that implements :class:`CommandSource`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Protocol, runtime_checkable

from textual.command import CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.widgets import Input

from cockpit.app.actions.action import Action
from cockpit.app.actions.session_actions import followable_sessions
from cockpit.app.dialogs.question import without_blinking
from cockpit.app.host import Host
from widgets.text.tone import DIM, line

Command = tuple[str, str, Callable[[], object]]
"""Title, hint, and function of one row of the palette."""

_SESSIONS_MOST = 30


@runtime_checkable
class CommandSource(Protocol):
    """A screen over which the palette has commands."""

    @property
    def host(self) -> Host: ...

    def valid_actions(self) -> Iterable[Action[Host]]:
        """Return the actions that are valid now and belong into the palette."""
        ...

    def act(self, action_id: str) -> None:
        """Run an action."""
        ...


class Palette(CommandPalette):
    """The palette over the cockpit, with a cursor that does not blink."""

    def on_mount(self) -> None:
        without_blinking(self.query_one(Input))


class Commands(Provider):
    """The commands of the screen below the palette; none over a dialog."""

    async def discover(self) -> Hits:
        for title, hint, run in self._commands(everything=False):
            yield DiscoveryHit(_draw(title, hint), run, text=title)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for title, hint, run in self._commands(everything=True):
            score = matcher.match(title)
            if score > 0:
                # The matcher's own highlight parses markup, and titles may hold untrusted text.
                yield Hit(score, _draw(title, hint), run, text=title)

    def _commands(self, *, everything: bool) -> Iterator[Command]:
        screen = self.screen
        if not isinstance(screen, CommandSource):
            return
        for action in screen.valid_actions():
            yield action.title, action.key, partial(screen.act, action.id)
        if everything:
            host = screen.host
            for name in sorted(host.available_themes):
                yield f"Theme: {name}", "", partial(host.choose_theme, name)
            for session_id, name, hint in islice(followable_sessions(host), _SESSIONS_MOST):
                yield f"Follow: {name}", hint, partial(host.attach, session_id)


def _draw(title: str, hint: str) -> Content:
    return line(title, ("  " + hint if hint else "", DIM))
