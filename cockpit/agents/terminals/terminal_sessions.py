"""Sessions of agents that the user runs in terminals of their own, as rows of ``sessions``.

cockpit did not start them; their hooks say what they do. See ``docs/reference/hooks.md``, sessions.
"""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from cockpit.loop.permissions.permission_body import find_place
from cockpit.loop.runtime_settings import DEFAULT_BUDGET
from cockpit.store.context import profiles
from cockpit.store.db.transaction import Tx
from cockpit.store.sessions import sessions
from cockpit.store.sessions.sessions import Session

TRANSPORT = "hook"
UNTITLED = " in a terminal"
"""The end of a title before the first prompt."""
_MAX_TITLE = 120


class TerminalAgent(Struct, frozen=True):
    """Whose session it is and where it works, as a hook call says."""

    agent: str
    """Its name in the registry."""
    agent_session: str
    """Its own id of the session."""
    root: str
    """The worktree."""
    task_id: str | None = None


def ensure_session(tx: Tx, agent: TerminalAgent, *, policy: str = "ask") -> Session:
    """Return the session of an agent, which is created where its hooks report for the first time."""
    session = sessions.find_agent_session(tx.connection, agent.agent, agent.agent_session)
    if session is not None:
        return session
    root = Path(agent.root)
    place = find_place(root)
    return sessions.create(
        tx,
        task_type=sessions.EXTERNAL_AGENT,
        title=f"{agent.agent}{UNTITLED}",
        words="",
        target={},
        model=f"{sessions.RUNNER_PREFIX}{agent.agent}",
        policy=policy,
        interactive=True,
        root=root,
        rev=None,
        profile_id=profiles.ensure_default(tx, DEFAULT_BUDGET).profile_id,
        limits={},
        project=place.project,
        branch=place.branch,
        task_id=agent.task_id,
        actor=f"agent:{agent.agent}",
        agent=agent.agent,
        transport=TRANSPORT,
        cwd=root,
        agent_session=agent.agent_session,
    )


def title_from(prompt: str) -> str:
    """Return a session's title: the first line of its first prompt."""
    lines = prompt.strip().splitlines()
    return lines[0][:_MAX_TITLE] if lines else ""
