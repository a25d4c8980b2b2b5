"""The commands of the screen itself in the prompt, beside those of task types and of agents.

Specified in ``docs/reference/screen.md``.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from cockpit.app.actions import agent_command, plan_command, work_command

if TYPE_CHECKING:
    from cockpit.app.host import Host

COMMANDS = (
    (plan_command.COMMAND, plan_command.ARGUMENTS),
    (work_command.COMMAND, work_command.ARGUMENTS),
    *agent_command.COMMANDS,
)
"""The commands and what follows each, for the prompt's completion."""


def is_command(text: str) -> bool:
    """Whether ``text`` asks something of the screen itself, and so is no reply to anyone."""
    return (
        plan_command.plan_source(text) is not None
        or work_command.work_words(text) is not None
        or agent_command.is_agent_command(text)
    )


def read_command(host: Host, text: str) -> Coroutine[Any, Any, None] | None:
    """Return what ``text`` asks of the screen itself; None for a message to an agent."""
    if (source := plan_command.plan_source(text)) is not None:
        return plan_command.propose_plan(host, text, source)
    if (words := work_command.work_words(text)) is not None:
        return work_command.start_work(host, text, words)
    return agent_command.read_agent_command(host, text)
