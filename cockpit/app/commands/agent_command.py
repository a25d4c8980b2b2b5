"""``/agent``, ``/mode``, ``/model`` and ``/fork`` in the prompt: sessions of external agents, and what is
chosen in them.

Specified in ``docs/reference/screen.md``.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from cockpit.app.commands.command_record import PromptCommand
from cockpit.app.dialogs.small_dialogs import PickOne
from cockpit.core.errors import CockpitError
from widgets.forms.pick_list import mark_current

if TYPE_CHECKING:
    from cockpit.app.host import Host
    from cockpit.app.state.agent_state import AgentState
    from cockpit.app.state.header import SessionState
    from cockpit.loop.external_agent_interface import AgentChoice, AgentEntry

_START = re.compile(r"(?P<name>\S+)(?P<options>(?:\s+--(?:worktree|checkout)(?!\S))*)")


class ChoiceUnknown(CockpitError):
    """There is nothing of that name to choose."""

    code = "usage"


async def start_agent(host: Host, words: str) -> None:
    """Start and follow a session of the agent that ``words`` begin with; without words, list the agents.

    The agent is started at once, so that its modes and commands are there; what follows its name is its
    first message. ``--worktree`` or ``--checkout`` behind the name says where it works.
    """
    if not words:
        await pick_agent(host)
        return
    match = _START.match(words)
    if match is None:
        raise AssertionError("words that are not empty begin with a word")
    options, name = match["options"].split(), match["name"]
    places = {option.removeprefix("--") for option in options}
    if len(places) > 1:
        raise ChoiceUnknown("An agent works in the checkout or in a worktree, not in both.")
    session_id = await host.engine.start_agent(
        name, words[match.end() :].strip(), where="".join(places)
    )
    host.trail.clear()
    host.attach(session_id)
    host.runs.ensure_running(session_id)


async def pick_agent(host: Host) -> None:
    """List the agents; the chosen one gets a session."""

    def start(name: str | None) -> None:
        if name:
            host.request(lambda: start_agent(host, name))

    agents = await host.engine.list_agents()
    rows = [(each.name, each.title, f"{each.name} · {describe_installed(each)}") for each in agents]
    session = host.session
    here = session.agent if session is not None else ""
    current = next((each.name for each in agents if not here and each.has_new_sessions), here)
    host.open_screen(
        PickOne("Start a session with", mark_current(rows, current), first=current), start
    )


def describe_installed(entry: AgentEntry) -> str:
    """Say whether an agent is installed."""
    return "installed" if entry.is_installed else "not installed"


async def choose(host: Host, kind: str, words: str) -> None:
    """Choose the mode or the model that ``words`` name, by id or name; without words, list them.

    ``kind`` may also be an agent's own option. Raises :class:`ChoiceUnknown`.
    """
    session, session_id = host.session, host.session_id
    if session is None or not session.has_agent:
        await _change_built_in(host, kind, words)
        return
    choice = await _find_choice(host, kind)
    if words:
        value = find_value(choice, words)
        await host.engine.choose(session_id, kind, value)
        return

    def change(value: str | None) -> None:
        if value and value != choice.current:
            host.request(lambda: host.engine.choose(session_id, kind, value))

    rows = [(value, name or value, value) for value, name in choice.values]
    host.open_screen(
        PickOne(choice.name, mark_current(rows, choice.current), first=choice.current), change
    )


async def _change_built_in(host: Host, kind: str, words: str) -> None:
    session_id = host.session_id
    agent = host.welcome.agent
    if not session_id and agent is not None:
        raise ChoiceUnknown(
            f"{agent.title} has no session yet. Send it a message first; then it offers its {kind}s."
        )
    if kind != "model":
        raise ChoiceUnknown(
            "There is no mode to choose: no session of an external agent is followed."
            " Start one with /agent NAME."
        )
    if words:
        await change_model(host, session_id, words)
    else:
        ask_model(host)


def ask_model(host: Host) -> None:
    """Ask for another model: of the followed session, or of new ones where none is followed."""
    from cockpit.app.dialogs import pick_model

    session_id = host.session_id
    pick_model.ask_model(host, lambda name: change_model(host, session_id, name))


async def change_model(host: Host, session_id: str, name: str) -> None:
    """Give a session, or without one the new sessions of this screen, the model ``name``.

    Raises :class:`ChoiceUnknown` and the errors of the engine.
    """
    if session_id:
        await host.engine.change(session_id, model=name)
        return
    from cockpit.decide.model import ModelError

    try:
        host.welcome.model = chosen = await host.engine.default_model(name)
    except ModelError as error:
        raise ChoiceUnknown(str(error)) from error
    host.main.schedule_paint()
    host.main.flash(f"new sessions use {chosen}, until cockpit is closed; /settings keeps a model")


async def _find_choice(host: Host, kind: str) -> AgentChoice:
    """Return what can be chosen: as the open agent has it, else as it said when it was open."""
    from cockpit.loop.external_agent_interface import AgentChoice

    live = {each.kind: each for each in await host.engine.agent_choices(host.session_id)}
    for name, stored in host.state.agent_of(host.session_id).choices.items():
        values = stored.choices if isinstance(stored.choices, tuple) else ()
        pairs = tuple((value.id, value.name) for value in values)
        live.setdefault(name, AgentChoice(name, stored.name, stored.current, pairs))
    if kind not in live:
        names = ", ".join(sorted(live)) or "nothing yet: send it a message first"
        raise ChoiceUnknown(f"This agent has no {kind} to choose; it offers {names}.")
    return live[kind]


def find_value(choice: AgentChoice, words: str) -> str:
    """Return the id of the value that ``words`` name, by id or by name. Raises :class:`ChoiceUnknown`."""
    for matches in (
        [value for value, _ in choice.values if value == words],
        [value for value, name in choice.values if words.casefold() in (value.casefold(), name.casefold())],
    ):  # fmt: skip
        if matches:
            return matches[0]
    if not choice.values:
        return words
    names = ", ".join(value for value, _ in choice.values)
    raise ChoiceUnknown(f"There is no {choice.kind} {words[:60]!r}; there are {names}.")


async def pick_option(host: Host) -> None:
    """List what can be chosen in the agent; then the values of the chosen one."""
    choices = host.state.agent_of(host.session_id).choices

    def pick(kind: str | None) -> None:
        if kind:
            host.request(lambda: choose(host, kind, ""))

    rows = [(kind, each.name or kind, each.current) for kind, each in choices.items()]
    empty = "This agent offers nothing to choose, or it has not been open yet. esc goes back."
    host.open_screen(PickOne("Change in the agent", rows, empty=empty), pick)


async def fork(host: Host, words: str = "") -> None:
    """Continue in a second session, and follow that; ``words`` may be the wave after which it begins.

    An external agent forks its own session from here, where it can.
    """
    session, wave = host.session, words.strip()
    if session is None:
        raise ChoiceUnknown("There is no session to fork. F6 lists those that you can follow.")
    if wave and not (wave.isdecimal() and int(wave)):
        raise ChoiceUnknown(f"{wave[:60]!r} is not a wave. Write /fork or /fork 4.")
    if session.has_agent:
        if wave:
            raise ChoiceUnknown("An external agent forks its session from here: write /fork.")
        host.attach(await host.engine.fork_agent(session.session_id))
        return
    session_id = session.session_id
    host.attach(await host.engine.fork_session(session_id, int(wave) if wave else None))


def list_agent_words(
    session: SessionState | None, state: AgentState
) -> list[tuple[str, str]] | None:
    """Return the commands of the agent of ``session`` and what each means; None for the built-in agent."""
    if session is None or not session.has_agent:
        return None
    ours = {f"/{command.name}" for command in COMMANDS}
    words = [(f"/{each.name.lstrip('/')}", each.text) for each in state.commands]
    words = [each for each in words if each[0] not in ours]
    for kind in ("mode", "model"):
        choice = state.choices.get(kind)
        values = choice.choices if choice is not None else ()
        words += [
            (f"/{kind} {value.id}", value.name)
            for value in (values if isinstance(values, tuple) else ())
        ]
    return words


async def _choose(host: Host, words: str, *, kind: str) -> None:
    await choose(host, kind, words)


async def _fork(host: Host, words: str) -> None:
    await fork(host, words)


COMMANDS = (
    PromptCommand(
        "agent",
        "NAME [--worktree|--checkout] and a message: a session with an external agent",
        start_agent,
    ),
    PromptCommand("mode", "NAME: the mode of the external agent", partial(_choose, kind="mode")),
    PromptCommand("model", "NAME: the model of the session", partial(_choose, kind="model")),
    PromptCommand(
        "fork", "[WAVE]: continue in a second session that knows what this one knew then", _fork
    ),
)
