"""Why a permission ends without an answer here: each end says in its own words what happened.

See ``docs/reference/agents.md``, ends of a permission.
"""

from __future__ import annotations

import asyncio

from msgspec import Struct

QUIT = "cockpit is closing"
"""The message of a cancellation by which cockpit ends its runs at its own end."""
STOP = "the run is stopped"
"""The message of a cancellation by which cockpit ends a run: its time is over, or its chain ends."""


class Ending(Struct, frozen=True):
    """One way in which a permission ends without an answer."""

    words: str
    """What happened, as a sentence for the user and the agent."""
    by: str = ""
    """Who ended it: ``person``, ``engine``; '' for the agent."""

    def decider(self, agent: str) -> str:
        """Return the name that the proposal's decision has."""
        return self.by or f"agent:{agent}"


INTERRUPTED = Ending("You interrupted the agent before you answered.", "person")
CLOSED = Ending("cockpit was closed before you answered.", "engine")
STOPPED = Ending("The agent's run was stopped before you answered.", "engine")
AGENT_ENDED = Ending("The agent's process ended before you answered.")
TAKEN_BACK = Ending("The agent took its request back.")
WENT_ON = Ending("The agent ended its turn without your answer.")
WAITER_ENDED = Ending("The cockpit that waited for your answer ended.", "engine")
ALLOWED_THERE = Ending("You allowed it in the agent's own terminal.")
LEFT_THERE = Ending(
    "You answered it in the agent's own terminal, or the agent no longer asks: it ended its question."
)
WROTE_THERE = Ending("You wrote to the agent in its own terminal before you answered.")
SESSION_ENDED = Ending("The agent's session ended before you answered.")
ASKS_THERE = Ending(
    "cockpit was closed before you answered; the agent asks in its own terminal.", "engine"
)


class Withdrawal:
    """Takes a question back, once and with the reason; the first reason counts."""

    def __init__(self) -> None:
        self.ending: Ending | None = None
        self._event = asyncio.Event()

    def withdraw(self, ending: Ending) -> None:
        """Take the question back."""
        if self.ending is None:
            self.ending = ending
        self._event.set()

    async def wait(self) -> Ending:
        """Wait until the question is taken back; returns why."""
        await self._event.wait()
        return self.ending or TAKEN_BACK


def ending_of(error: asyncio.CancelledError) -> Ending:
    """Return why a run was cancelled: by the user, by its chain, or because cockpit is closing."""
    if QUIT in error.args:
        return CLOSED
    return STOPPED if STOP in error.args else INTERRUPTED
