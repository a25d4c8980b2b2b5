"""Settings for running tasks: ``[work]`` and ``[headless]`` (``docs/reference/configuration.md``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SESSION_TOKENS = 5_000_000
"""Tokens after which a session of a chain hands over, where nothing else is set."""


@dataclass(frozen=True, slots=True)
class WorkSettings:
    """``[work]``: how often failing tests are mended after an implementation, whether at all, the
    command that runs them (None: it is detected), and the tokens that one session of a chain may
    spend before it hands over to the next."""

    max_test_retries: int = 3
    auto_fix: bool = True
    test_command: str | None = None
    session_token_limit: int = SESSION_TOKENS


@dataclass(frozen=True, slots=True)
class HeadlessSettings:
    """``[headless]``: how many sessions a chain may have, when it writes its report, and how a person
    is told that it has ended or waits; and what goes on when an agent's session has ended: nothing, the
    newest unfinished chain, or that and where there is none a new one over the whole backlog."""

    max_sessions: int = 10
    report: Literal["always", "on_complete", "on_failure", "never"] = "on_failure"
    notify: Literal["terminal", "none"] = "terminal"
    on_session_end: Literal["off", "continue", "all"] = "off"
