"""What a user who begins has: the model of a new session, and the agents that are installed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.app.projection.welcome import build_welcome
from cockpit.app.screens.chain_log import ChainLog
from cockpit.app.screens.last_visit import load_visit, summarize_since
from cockpit.core.errors import CockpitError
from widgets.text.detail import DetailRow

if TYPE_CHECKING:
    from cockpit.app.engine_client import Engine
    from cockpit.app.projection.fold import Views
    from cockpit.loop.external_agents import AgentEntry


class WelcomeFacts:
    """Read once, after the first frame."""

    def __init__(self) -> None:
        self.model = ""
        """The model of a new session; empty until it was read, or where there is none."""
        self.agent: AgentEntry | None = None
        """The external agent that has new sessions: it has a model of its own."""
        self._agents: tuple[str, ...] | None = None
        self.was_read = False
        self.since = ""
        """What happened since the screen was open last, in words."""
        self.log = ChainLog()

    async def read(self, engine: Engine) -> None:
        """Ask the engine."""
        try:
            after = await asyncio.to_thread(load_visit, engine.place)
            if after is not None:
                self.since = await engine.store.read(lambda c: summarize_since(c, after))
            agents = await engine.list_agents()
            self.agent = next((each for each in agents if each.has_new_sessions), None)
            if self.agent is None:
                self.model = await engine.default_model()
            self._agents = tuple(each.title for each in agents if each.is_installed)
        except CockpitError:
            return  # the first message reports the error
        finally:
            self.was_read = True

    def add_welcome(self, views: Views, waiting: int, log: Sequence[DetailRow] = ()) -> Views:
        """Return the views with a welcome; ``waiting`` is how many proposals wait for the user.

        ``log`` are the events of the newest chain.
        """
        welcome = build_welcome(
            self.model,
            self._agents,
            views.board,
            waiting,
            self.agent,
            log,
            is_live=self.log.is_live,
            since=self.since,
        )
        return replace(views, welcome=welcome)
