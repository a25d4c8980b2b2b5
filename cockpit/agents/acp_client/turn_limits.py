"""The limits of cost and tokens in a session of an ACP agent: they are checked between its turns.

An agent says what it spent when a turn is over, if at all, so a turn is never cut off. See
``docs/reference/agents.md``, sessions.
"""

from __future__ import annotations

from cockpit.loop.runtime_settings import Limits
from cockpit.store.sessions.sessions import Session

LIMIT = "limit"
"""The reason of a turn that is not begun, or not followed by another one."""


def find_reached_limit(session: Session, limits: Limits, title: str, *, after_turn: bool) -> str:
    """Return why the session gets no further turn, as sentences; empty where it gets one.

    ``title`` is the agent's. After a turn an agent that reported nothing cannot be limited, and gets none.
    """
    cost, tokens = session.cost_usd, session.input_tokens + session.output_tokens
    reason = ""
    if limits.max_cost is not None:
        if cost is not None and cost >= limits.max_cost:
            reason = f"The limit of ${limits.max_cost:.2f} is reached (${cost:.2f} spent)."
        elif cost is None and after_turn:
            reason = f"The limit of ${limits.max_cost:.2f} cannot be kept: {title} reports no cost."
    if not reason and limits.max_tokens is not None:
        if tokens >= limits.max_tokens:
            reason = f"The limit of {limits.max_tokens:,} tokens is reached ({tokens:,} spent)."
        elif not tokens and after_turn:
            reason = (
                f"The limit of {limits.max_tokens:,} tokens cannot be kept: {title} reports none."
            )
    if not reason:
        return ""
    return f"{reason} The work is kept; resume the session with a higher limit, or without it."
