"""The commands of the screen in the prompt: one table of them, and who gets a text that looks like one.

``/NAME WORDS`` is a command of the screen (this table, and each action with a ``command``), of a task type,
a skill that is mentioned, or a command of the followed session's agent. Nothing else of that form is ever
sent to an agent. Specified in ``docs/reference/screen.md``, commands.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Coroutine, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from cockpit.app.commands import (
    action_commands,
    agent_command,
    plan_command,
    work_command,
)
from cockpit.app.commands.command_record import CommandRefused, PromptCommand
from cockpit.core.errors import CockpitError

if TYPE_CHECKING:
    from cockpit.app.host import Host

TABLE: Mapping[str, PromptCommand] = {
    command.name: command
    for command in (
        *action_commands.COMMANDS,
        # The same names with words behind them.
        *plan_command.COMMANDS,
        *work_command.COMMANDS,
        *agent_command.COMMANDS,
    )
}
"""Every command of the screen, by its name without the slash."""

COMMANDS = tuple((f"/{command.name}", command.hint) for command in TABLE.values())
"""The commands with their hints, for the prompt's completion."""

_COMMAND = re.compile(r"/(?P<name>[A-Za-z][\w:-]*)(?:\s+(?P<words>.*))?", re.DOTALL)
_NEAR = 0.6
"""How alike a name has to be to be offered for an unknown one."""


class CommandUnknown(CockpitError):
    """No command has that name."""

    code = "usage"


def is_command(text: str) -> bool:
    """Whether ``text`` has the form of a command, and so is not a reply to a proposal."""
    return _COMMAND.fullmatch(text.strip()) is not None


def read_command(host: Host, text: str) -> Coroutine[Any, Any, None] | None:
    """Return what ``text`` asks of the screen itself; None for a text that someone else gets."""
    match = _COMMAND.fullmatch(text.strip())
    command = TABLE.get(match["name"].lower()) if match is not None else None
    if match is None or command is None:
        return None
    return _run(host, command, text, (match["words"] or "").strip())


async def _run(host: Host, command: PromptCommand, text: str, words: str) -> None:
    """Run a command; on an error ``text`` (the prompt as it was typed) returns to the prompt."""
    try:
        if words and not command.takes_words:
            raise CommandRefused(f"/{command.name} takes nothing behind it.")
        await command.run(host, words)
    except CockpitError as error:
        host.restore_text(text)
        host.show_error(str(error))


async def find_receiver(host: Host, session_id: str, text: str) -> str:
    """Return the session that gets ``text``: ``session_id``, or none where it starts one of its own.

    Raises :class:`CommandUnknown` for a command that nobody has: it is sent to no agent, and once
    :class:`CommandRefused` where a session would start on what the offline rules cannot do.
    """
    match = _COMMAND.fullmatch(text.strip())
    if match is None and session_id:
        return session_id
    if match is None or (not session_id and await _starts_agent(host)):
        await _check_offline(host, text)
        return ""  # an external agent knows its commands once it has started
    name = match["name"]
    if name in _agent_commands(host, session_id):
        return session_id
    kind = await host.engine.command_kind(f"/{name}")
    if kind:
        if not session_id:
            await _check_offline(host, text)
        return session_id if kind == "skill" else ""
    types = [command.removeprefix("/") for command, _ in await host.engine.complete("/", "/")]
    names = {*TABLE, *types, *_agent_commands(host, session_id)}
    near = difflib.get_close_matches(name.lower(), sorted(names), n=1, cutoff=_NEAR)
    near += [each for each in sorted(names) if name.lower() in each and each not in near]
    hint = f" Did you mean /{' or /'.join(near[:3])}?" if near else " F1 lists the commands."
    raise CommandUnknown(
        f"There is no command /{name}, so nothing was sent.{hint} Without the / it is sent as a message."
    )


def _agent_commands(host: Host, session_id: str) -> Iterator[str]:
    """Yield the names of the commands that the session's external agent has."""
    session = host.state.session(session_id)
    if session is not None and session.has_agent:
        for each in host.state.agent_of(session_id).commands:
            yield each.name.lstrip("/")


async def _check_offline(host: Host, text: str) -> None:
    """Refuse ``text`` once where a new session would get the offline rules, and they cannot do it.

    Raises :class:`CommandRefused` the first time; later texts of the same run of the screen are started.
    """
    from cockpit.decide.choose_model import OFFLINE
    from cockpit.decide.offline.limits import LIMITS, SETS_A_MODEL, is_within_rules

    if host.knows_offline_limits or is_within_rules(text):
        return
    if await host.engine.default_model() != OFFLINE:
        return
    if await _starts_agent(host):
        return
    host.knows_offline_limits = True
    review = f" /review {host.welcome.review} reviews." if host.welcome.review else ""
    raise CommandRefused(
        f"Nothing was started: {LIMITS}. Enter again lets them look around and plan.{review} {SETS_A_MODEL}"
    )


async def _starts_agent(host: Host) -> bool:
    """Whether an external agent gets new sessions."""
    try:
        return any(agent.has_new_sessions for agent in await host.engine.list_agents())
    except CockpitError:
        return False  # this process drives none
