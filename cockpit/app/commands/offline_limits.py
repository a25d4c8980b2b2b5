"""What the offline rules cannot do is said before a session is started on it, and asked about once.

Specified in ``docs/reference/screen.md``, offline rules.
"""

from __future__ import annotations

from cockpit.app.commands.command_record import CommandRefused
from cockpit.app.host import Host
from cockpit.core.errors import CockpitError


async def check_offline(host: Host, text: str) -> None:
    """Refuse ``text`` once where a new session would get the offline rules, and they cannot do it.

    Raises :class:`CommandRefused` the first time; later texts of the same run of the screen are started.
    """
    from cockpit.decide.choose_model import OFFLINE
    from cockpit.decide.offline.limits import LIMITS, SETS_A_MODEL, is_within_rules

    if host.knows_offline_limits or is_within_rules(text):
        return
    if await host.engine.default_model() != OFFLINE:
        return
    if await starts_agent(host):
        return
    host.knows_offline_limits = True
    review = f" /review {host.welcome.review} reviews." if host.welcome.review else ""
    raise CommandRefused(
        f"Nothing was started: {LIMITS}. Enter again lets them look around and plan.{review} {SETS_A_MODEL}"
    )


async def starts_agent(host: Host) -> bool:
    """Whether an external agent gets new sessions."""
    try:
        return any(agent.has_new_sessions for agent in await host.engine.list_agents())
    except CockpitError:
        return False  # this process drives none
