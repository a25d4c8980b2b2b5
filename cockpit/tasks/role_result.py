"""How a role's session ended: what it says, and what its agent did. See ``docs/reference/roles.md``."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import UNSET

from cockpit.store.journal import journal
from cockpit.store.journal.details.agents import RunnerEnded
from cockpit.store.journal.event_types import Action


@dataclass(frozen=True, slots=True)
class RoleResult:
    """How a role's session ended."""

    status: str
    """``done``, ``blocked``, ``limit`` (its waves were used up), or ``needs_answer`` (it ended in words,
    without ``finish``)."""
    summary: str
    """Its last message."""
    tools: int | None = None
    """How many tools an external agent used; None where its output does not say, and for the built-in one."""
    refused: Sequence[str] = ()
    """What an external agent had no permission for, one line each."""


def ended_without_finish(result: RoleResult) -> str:
    """Return the reason that a role's work does not count, in its own last words."""
    words = f" Its last words: {result.summary}" if result.summary else ""
    return f"It ended in words without saying that it is done, and needs an answer.{words}"


def count_tools(connection: sqlite3.Connection, session_id: str) -> tuple[int | None, list[str]]:
    """Return the tools that an external agent used in all runs of the session, and what it was refused."""
    tools: int | None = None
    refused: list[str] = []
    for row in journal.rows(connection, session_id=session_id, action=str(Action.RUNNER_ENDED)):
        detail = row.detail
        if isinstance(detail, RunnerEnded):
            if detail.tools is not UNSET:
                tools = (tools or 0) + detail.tools
            refused += () if detail.refused is UNSET else detail.refused
    return tools, refused
