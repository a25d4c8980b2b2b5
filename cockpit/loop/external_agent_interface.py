"""What the runtime needs of external agents: the floor above implements it, and the configuration injects it.

See ``docs/reference/agents.md``, sessions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from cockpit.loop.wave_context import Engine
    from cockpit.store.sessions.sessions import Session


CHECKOUT, WORKTREE = "checkout", "worktree"
"""Where the user wants an agent to work; '' leaves it to the rule."""


class AgentChoice(Struct, frozen=True):
    """One thing that can be chosen in a running agent: its mode, its model, an option."""

    kind: str
    """``mode``, ``model`` or the agent's id of the option."""
    name: str
    current: str
    values: tuple[tuple[str, str], ...]
    """The ids and names of the values."""


class AgentEntry(Struct, frozen=True):
    """One agent of the registry."""

    name: str
    title: str
    is_installed: bool
    has_new_sessions: bool = False
    """Whether the settings give it each new session."""


class ExternalAgents(Protocol):
    """The sessions of external agents that this process drives. An agent stays open between turns."""

    async def list_agents(self, engine: Engine) -> Sequence[AgentEntry]:
        """Return the agents that can have a session, those that are installed first. Starts none."""
        ...

    async def choose_folder(self, engine: Engine, agent: str, where: str) -> Path | None:
        """Return the folder of a worktree that is made for ``agent``, or None for the checkout.

        ``where`` is :data:`CHECKOUT`, :data:`WORKTREE`, or '' for the rule: the second agent in a project
        gets a worktree. An agent that is not known or not installed is refused before anything is made.
        """
        ...

    async def create(
        self,
        engine: Engine,
        agent: str,
        words: str,
        *,
        policy: str,
        interactive: bool,
        cwd: Path,
        branch: str,
        task_id: str | None = None,
        target: Mapping[str, str] | None = None,
        alone: bool = False,
    ) -> str:
        """Store a new session of ``agent`` in the folder ``cwd``; returns its id. Nothing is started yet.

        ``target`` names the branch that its worktree began from as ``into``; empty for the checkout. With
        ``alone`` nothing is stored, and '' returned, where another agent works in ``cwd`` by now.
        """
        ...

    async def run(self, engine: Engine, session_id: str, *, interactive: bool | None) -> Session:
        """Send the user's messages, also those that come meanwhile, until there are none left.

        Cancel to interrupt the turn. A headless session ends then; its agent as well.
        """
        ...

    async def choose(self, engine: Engine, session_id: str, kind: str, value: str) -> None:
        """Choose a value: a mode, a model, or an option of the agent."""
        ...

    def choices(self, session_id: str) -> Sequence[AgentChoice]:
        """Return what can be chosen; nothing while the agent is not open."""
        ...

    def commands(self, session_id: str) -> Sequence[tuple[str, str]]:
        """Return the names and meanings of the agent's commands; none while it is not open."""
        ...

    async def fork(self, engine: Engine, session_id: str) -> str:
        """Store a new session that continues from here, where the agent can; returns its id."""
        ...

    async def reads_before(
        self, engine: Engine, task_id: str, scope: Sequence[str]
    ) -> tuple[Sequence[str], str]:
        """Return what external agents read for a task, beside ``scope``, and words that name it."""
        ...

    async def close(self, session_id: str | None = None) -> None:
        """End the agent of a session, or of all; the sessions can be resumed."""
        ...
