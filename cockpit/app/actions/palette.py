"""The command palette: the actions that are valid now, sessions to follow, and themes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice

from msgspec import Struct
from rich.console import RenderableType
from textual.command import CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.widgets import Input

from cockpit.app.actions.screen_actions import ActionScreen
from cockpit.app.actions.session_actions import followable_sessions
from cockpit.app.dialogs.small_dialogs import without_blinking
from widgets.frame.dimmed_screen import dim_quickly
from widgets.text.style_names import DIM, line

_SESSIONS_MOST = 30
_KEY_CELLS = 9
"""The width of the column of keys."""


class Command(Struct, frozen=True):
    """One row of the palette."""

    title: str
    run: Callable[[], object]
    key: str = ""
    hint: str = ""
    """What stands dim behind the title."""
    synonyms: str = ""
    """Further words by which it is found."""


class Palette(CommandPalette):
    """The palette over the cockpit, with a cursor that does not blink."""

    def render(self) -> RenderableType:
        """Draw the screen below, dimmed."""
        dimmed: RenderableType = dim_quickly(super().render())
        return dimmed

    def on_mount(self) -> None:
        without_blinking(self.query_one(Input))


class Commands(Provider):
    """The commands of the screen below the palette; none over a dialog."""

    async def discover(self) -> Hits:
        for command in self._commands(everything=False):
            yield DiscoveryHit(_draw(command), command.run, text=command.title)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for command in self._commands(everything=True):
            score = rank(command, query, matcher.match)
            if score > 0:
                # The matcher's own highlight parses markup, and titles may hold untrusted text.
                yield Hit(score, _draw(command), command.run, text=command.title)

    def _commands(self, *, everything: bool) -> Iterator[Command]:
        screen = self.screen
        if not isinstance(screen, ActionScreen):
            return
        for action in screen.valid_actions():
            name = f"/{action.command}" if action.command else ""
            words = f"{action.command} {action.synonyms}"
            run = partial(screen.act, action.id)
            yield Command(action.title, run, action.key, name, words)
        if everything:
            host = screen.host
            for name in sorted(host.available_themes):
                yield Command(f"Theme: {name}", partial(host.choose_theme, name))
            for session_id, name, hint in islice(followable_sessions(host), _SESSIONS_MOST):
                yield Command(f"Follow: {name}", partial(host.attach, session_id), hint=hint)


def rank(command: Command, query: str, match: Callable[[str], float]) -> float:
    """Return how well ``query`` names a command, 0 for not at all.

    The command of that name comes first, then words that begin with it in the title, then synonyms, then the
    title's inside, then several words of which each begins one of the title or the synonyms, in any order,
    then letters of the title in order, as ``match`` has it. Where no command has all of several words, one
    that has some is better than none.
    """
    text = query.strip().removeprefix("/").casefold()
    title = command.title.casefold()
    if command.hint == f"/{text}":
        return _BY_NAME
    if f" {title}".find(f" {text}") >= 0:
        return _BY_TITLE
    if any(word.startswith(text) for word in command.synonyms.casefold().split()):
        return _BY_SYNONYM
    if text in title:
        return _BY_INSIDE
    if share := _share_of_words(text, f"{title} {command.synonyms.casefold()}"):
        return share * _BY_WORDS
    score = match(command.title)
    return score / (1 + score)


_BY_NAME, _BY_TITLE, _BY_SYNONYM, _BY_INSIDE, _BY_WORDS = 5.0, 4.0, 3.0, 2.0, 1.5
_WORD = re.compile(r"\w+")
_SMALL = frozenset(
    ("a", "an", "and", "at", "do", "for", "how", "in", "is", "it", "of", "on", "or", "the", "to")
)
"""Words that say nothing about what is looked for."""


def _share_of_words(text: str, names: str) -> float:
    """Return which part of several words begins one of ``names``; 0 for a single word."""
    words = [word for word in _WORD.findall(text) if word not in _SMALL]
    if len(_WORD.findall(text)) < 2 or not words:
        return 0.0
    vocabulary = _WORD.findall(names)
    return sum(any(name.startswith(word) for name in vocabulary) for word in words) / len(words)


def _draw(command: Command) -> Content:
    key = line((f"{command.key:<{_KEY_CELLS}}", DIM))
    return Content.assemble(
        key, line(command.title, (f"  {command.hint}" if command.hint else "", DIM))
    )
