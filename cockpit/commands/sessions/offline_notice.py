"""Say what the offline rules cannot do, before a session begins on more."""

from __future__ import annotations

from cockpit.decide.choose_model import OFFLINE
from cockpit.decide.offline.limits import ONE_LINE, is_within_rules
from cockpit.loop.runtime import Runtime


async def find_offline_notice(runtime: Runtime, text: str) -> str:
    """Return the line for a new session with ``text``; empty for what the rules can do.

    It is empty, too, for a user who chose the rules by name. Raises ``ModelError``.
    """
    settings = runtime.engine.settings
    if settings.model.model or settings.agent or is_within_rules(text):
        return ""
    return ONE_LINE if await runtime.default_model() == OFFLINE else ""
