"""Completions for the prompt: requested from the engine in the background, and cached."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from cockpit.app.commands.agent_command import describe_installed
from cockpit.app.commands.prompt_commands import COMMANDS
from cockpit.core.errors import CockpitError
from widgets.views import CompletionView

if TYPE_CHECKING:
    from cockpit.loop.runtime import Runtime

_AGENT_PREFIX = "agent"
_MOST = 500
_FRESH_S = 2.0
"""How long branches and tasks are kept; they change while the screen is open."""


class CompletionCache:
    """Answer at once from the cache; request anything else, and call ``on_arrival`` when it is there.

    ``agent_words`` gives the commands of the followed session's external agent with what each means; None
    for the built-in agent.
    """

    def __init__(
        self,
        engine: Runtime,
        on_arrival: Callable[[], object],
        agent_words: Callable[[], Sequence[tuple[str, str]] | None] = lambda: None,
    ) -> None:
        self._agent_words = agent_words
        self._engine = engine
        self._on_arrival = on_arrival
        self._cache: dict[tuple[str, str], tuple[CompletionView, ...]] = {}
        self._read_at: dict[tuple[str, str], float] = {}
        self._requests: dict[tuple[str, str], asyncio.Task[None]] = {}

    def get(self, sign: str, prefix: str) -> tuple[CompletionView, ...]:
        """Return completions of ``prefix`` (without its ``sign``); empty while they are requested."""
        words = self._agent_words() if sign == "/" else None
        if words is not None and " " not in prefix and not prefix.startswith(_AGENT_PREFIX):
            # The commands of task types are the built-in agent's.
            ours = {command for command, _ in COMMANDS}
            theirs = [each for each in words if each[0] not in ours]
            return _sort_views((*theirs, *COMMANDS), sign + prefix)
        key = (sign, prefix)
        completions = self._cache.get(key)
        if key not in self._requests and (completions is None or self._is_old(key)):
            self._requests[key] = asyncio.create_task(self._request(key))
        return completions or ()

    def _is_old(self, key: tuple[str, str]) -> bool:
        if key[0] == "@" or (key[0] == "/" and " " not in key[1]):
            return False
        return self._engine.store.clock.monotonic() - self._read_at[key] >= _FRESH_S

    async def _list_agents(self, text: str) -> list[tuple[str, str]]:
        return [
            (f"/agent {each.name}", f"{each.title} · {describe_installed(each)}")
            for each in await self._engine.list_agents()
            if f"/agent {each.name}".startswith(text)
        ]

    async def _request(self, key: tuple[str, str]) -> None:
        sign, prefix = key
        try:
            own = {command for command, _ in COMMANDS}
            completions = [
                each
                for each in await self._engine.complete(sign, sign + prefix)
                if each[0] not in own
            ]
            completions += [
                (command, arguments)
                for command, arguments in COMMANDS
                if sign == "/" and command.startswith(sign + prefix)
            ]
            if sign == "/" and prefix.startswith(_AGENT_PREFIX):
                completions += await self._list_agents(sign + prefix)
            if sign == "/" and " " not in prefix:
                completions.sort()
        except CockpitError:
            completions = []  # an error in a list of completions must not disturb typing
        finally:
            del self._requests[key]
        if len(self._cache) >= _MOST:
            self._cache.clear()
        before = self._cache.get(key, ())
        self._cache[key] = tuple(CompletionView(text, hint) for text, hint in completions)
        self._read_at[key] = self._engine.store.clock.monotonic()
        if self._cache[key] != before:
            self._on_arrival()


def _sort_views(words: Iterable[tuple[str, str]], text: str) -> tuple[CompletionView, ...]:
    chosen = sorted({each for each in words if each[0].startswith(text)})
    return tuple(CompletionView(command, hint) for command, hint in chosen)
