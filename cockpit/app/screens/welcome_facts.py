"""What a user who begins has: the model of a new session, and the agents that are installed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from cockpit.access.git_folders import find_commit, locate_git_folders
from cockpit.app.screens.chain_log import ChainLog
from cockpit.app.screens.last_visit import load_visit, summarize_since
from cockpit.app.state.welcome import build_welcome
from cockpit.core.errors import CockpitError
from cockpit.decide.model import ModelError
from widgets.text.detail import DetailRow

if TYPE_CHECKING:
    from cockpit.app.state.screen_state import Views
    from cockpit.loop.external_agent_interface import AgentEntry
    from cockpit.loop.runtime import Runtime


_DEFAULT_BRANCHES = ("main", "master")


def suggest_review(top: Path) -> str | None:
    """Return a range that can be reviewed in the checkout at ``top``; '' where there are no commits.

    None where there is a single commit, which no range has. Blocks.
    """
    here = find_commit(top, "HEAD") if locate_git_folders(top) else ""
    if not here:
        return ""
    for branch in _DEFAULT_BRANCHES:
        if commit := find_commit(top, f"refs/heads/{branch}"):
            if commit != here:
                return f"{branch}..HEAD"
            break
    return "HEAD~1..HEAD" if find_commit(top, "HEAD~1") else None


class WelcomeFacts:
    """Read once, after the first frame."""

    def __init__(self) -> None:
        self.model = ""
        """The model of a new session; empty until it was read, or where there is none."""
        self.problem = ""
        """Why new sessions have no model, in words; empty where they have one."""
        self.agent: AgentEntry | None = None
        """The external agent that has new sessions: it has a model of its own."""
        self._agents: tuple[str, ...] | None = None
        self.was_read = False
        self.review: str | None = None
        """A range to review, '' without commits; None until it was read, and where there is none."""
        self.since = ""
        """What happened since the screen was open last, in words."""
        self.log = ChainLog()

    async def read(self, engine: Runtime) -> None:
        """Ask the engine."""
        try:
            after = await asyncio.to_thread(load_visit, engine.place)
            if after is not None:
                self.since = await engine.store.read(lambda c: summarize_since(c, after))
            self.review = await asyncio.to_thread(suggest_review, engine.place.root)
            await self._read_agents(engine)
            if self.agent is None:
                await self._read_model(engine)
        except CockpitError:
            return  # the first message reports the error
        finally:
            self.was_read = True

    async def _read_agents(self, engine: Runtime) -> None:
        try:
            agents = await engine.list_agents()
        except CockpitError:
            agents = ()  # this process drives none
        self.agent = next((each for each in agents if each.has_new_sessions), None)
        self._agents = tuple(each.title for each in agents if each.is_installed)

    async def _read_model(self, engine: Runtime) -> None:
        try:
            self.model, self.problem = await engine.default_model(), ""
        except ModelError as error:
            self.problem = str(error)

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
            review=self.review,
            problem="" if self.model else self.problem,
        )
        return replace(views, welcome=welcome)
