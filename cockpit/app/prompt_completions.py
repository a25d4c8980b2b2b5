"""Completions for the prompt: asked of the engine beside the screen, remembered while they last."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from cockpit.app.actions import plan_command
from cockpit.app.engine_client import Engine
from cockpit.core.errors import CockpitError
from widgets.views import CompletionView

_MOST = 500


class CompletionCache:
    """Answers at once with what is known; what is not is asked, and ``arrived`` called then."""

    def __init__(self, engine: Engine, arrived: Callable[[], None]) -> None:
        self._engine = engine
        self._arrived = arrived
        self._known: dict[tuple[str, str], tuple[CompletionView, ...]] = {}
        self._asked: dict[tuple[str, str], asyncio.Task[None]] = {}

    def get(self, sign: str, prefix: str) -> tuple[CompletionView, ...]:
        """Completions of ``prefix`` (without its ``sign``); empty while they are being asked."""
        key = (sign, prefix)
        found = self._known.get(key)
        if found is None and key not in self._asked:
            self._asked[key] = asyncio.create_task(self._ask(key))
        return found or ()

    async def _ask(self, key: tuple[str, str]) -> None:
        sign, prefix = key
        try:
            found = [*await self._engine.complete(sign, sign + prefix)]
            if sign == "/" and plan_command.COMMAND.startswith(sign + prefix):
                found = sorted([*found, (plan_command.COMMAND, plan_command.ARGUMENTS)])
        except CockpitError:
            found = []  # a list that cannot be had must not get into the way of typing
        finally:
            del self._asked[key]
        if len(self._known) >= _MOST:
            self._known.clear()
        self._known[key] = tuple(CompletionView(text, hint) for text, hint in found)
        if found:
            self._arrived()
