"""Settings for running tasks: ``[work]`` and ``[headless]`` (``docs/reference/configuration.md``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

SESSION_TOKENS = 5_000_000
"""Tokens after which a worker hands over, where the configuration sets no other limit."""


class WorkSettings(Struct, frozen=True):
    """``[work]``."""

    max_test_retries: int = 3
    """How often a fixer works on failing tests after an implementation."""
    auto_fix: bool = True
    """Whether a fixer works on failing tests at all."""
    test_command: str | None = None
    """The command that runs the tests; None detects it."""
    setup: tuple[str, ...] = ()
    """Commands that install what a fresh worktree lacks, with the network."""
    copy: tuple[str, ...] = ()
    """Files of the checkout that git ignores and every worktree gets a copy of."""
    link: tuple[str, ...] = ()
    """Likewise, as links; the sandbox shows them read-only."""
    env: Mapping[str, str] | None = None
    """Variables of each worktree; ``{port}`` and ``{task}`` stand for its own."""
    fallback_runners: tuple[str, ...] = ()
    """External agents that continue where a provider takes no more for now."""
    session_token_limit: int = SESSION_TOKENS
    """Tokens that a worker may spend before it hands over."""


class HeadlessSettings(Struct, frozen=True):
    """``[headless]``."""

    max_chains: int = 10
    """The largest number of workers of a chain."""
    report: Literal["always", "on_complete", "on_failure", "never"] = "on_failure"
    """When a chain writes its report."""
    notify: Literal["terminal", "none"] = "terminal"
    """How cockpit notifies the user that a chain ended or waits."""
    on_session_end: Literal["off", "continue", "all"] = "off"
    """What starts when an external agent's session ends: nothing, the newest unfinished chain, or that chain
    or else a new one over the whole backlog."""
