"""What the offline rules cannot do is said before a session is started on it, and asked about once.

Specified in ``docs/reference/screen.md``, offline rules.
"""

from __future__ import annotations

import re

from cockpit.app.commands.prompt_command import CommandRefused
from cockpit.app.host import Host
from cockpit.core.errors import CockpitError
from cockpit.decide.choose_model import OFFLINE

_WITHIN = re.compile(
    r"/(?:review|plan)\b|.*(?:\breview|\w\.{2,3}\w|#\d|/pull/\d)", re.IGNORECASE | re.DOTALL
)
"""Texts that ask for a review or a plan, which the rules can do."""

LIMITS = (
    "Nothing was started: without a model, offline rules review changes, but write no code and answer no"
    " questions. Enter again lets them look around and plan. /review main..HEAD reviews;"
    " ANTHROPIC_API_KEY, OPENAI_API_KEY or --model sets a model."
)


async def check_offline(host: Host, text: str) -> None:
    """Refuse ``text`` once where a new session would get the offline rules, and they cannot do it.

    Raises :class:`CommandRefused` the first time; later texts of the same run of the screen are started.
    """
    if host.knows_offline_limits or _WITHIN.match(text.strip()):
        return
    if await host.engine.default_model() != OFFLINE:
        return
    if await _has_agent(host):
        return
    host.knows_offline_limits = True
    raise CommandRefused(LIMITS)


async def _has_agent(host: Host) -> bool:
    """Whether an external agent gets new sessions."""
    try:
        return any(agent.has_new_sessions for agent in await host.engine.list_agents())
    except CockpitError:
        return False  # this process drives none
