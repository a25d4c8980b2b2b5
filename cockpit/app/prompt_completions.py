"""Completions for the prompt: requested from the engine in the background, and cached."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from cockpit.app.actions.prompt_commands import COMMANDS
from cockpit.app.engine_client import Engine
from cockpit.core.errors import CockpitError
from widgets.views import CompletionView

_MOST = 500


class CompletionCache:
    """Answer at once from the cache; request anything else, and call ``on_arrival`` when it is there."""

    def __init__(self, engine: Engine, on_arrival: Callable[[], None]) -> None:
        self._engine = engine
        self._on_arrival = on_arrival
        self._cache: dict[tuple[str, str], tuple[CompletionView, ...]] = {}
        self._requests: dict[tuple[str, str], asyncio.Task[None]] = {}

    def get(self, sign: str, prefix: str) -> tuple[CompletionView, ...]:
        """Return completions of ``prefix`` (without its ``sign``); empty while they are requested."""
        key = (sign, prefix)
        completions = self._cache.get(key)
        if completions is None and key not in self._requests:
            self._requests[key] = asyncio.create_task(self._request(key))
        return completions or ()

    async def _request(self, key: tuple[str, str]) -> None:
        sign, prefix = key
        try:
            completions = [*await self._engine.complete(sign, sign + prefix)]
            completions += [
                (command, arguments)
                for command, arguments in COMMANDS
                if sign == "/" and command.startswith(sign + prefix)
            ]
            completions.sort()
        except CockpitError:
            completions = []  # an error in a list of completions must not disturb typing
        finally:
            del self._requests[key]
        if len(self._cache) >= _MOST:
            self._cache.clear()
        self._cache[key] = tuple(CompletionView(text, hint) for text, hint in completions)
        if completions:
            self._on_arrival()
