"""``cockpit agents``: list, check and add external agents."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from msgspec import to_builtins

from cockpit.access.user_presence import require_no_agent
from cockpit.agents.registry.installed_agents import (
    Installation,
    find_installation,
    read_version,
)
from cockpit.agents.registry.known_agents import Agent, AgentInvalid, load_agents, read_agent
from cockpit.cli_options import AS_JSON, examples
from cockpit.collections.agents import COLLECTION, describe_agent, say_how_to_install
from cockpit.commands.collection_groups import make_group
from cockpit.commands.exit_codes import Exit
from cockpit.commands.terminal import say, show, show_list
from cockpit.core.errors import CockpitError
from cockpit.core.project_paths import user_folder

agents = make_group(COLLECTION)


@agents.command(
    "check", epilog=examples("cockpit agents check", "cockpit agents check claude codex")
)
@click.argument("names", nargs=-1)
@AS_JSON
@click.pass_context
def check_agents(ctx: click.Context, /, names: tuple[str, ...], as_json: bool) -> None:
    """Check that agents speak the protocol.

    Without NAMES all installed agents are checked. No prompt is sent, so no model is called.
    """
    registry = load_agents(user_folder(os.environ))
    chosen = [registry.find(name) for name in names] or list(registry.agents.values())
    installations = [find_installation(agent, os.environ) for agent in chosen]
    if not names:
        installations = [entry for entry in installations if entry.program]
    records = asyncio.run(_check_all(installations))
    show_list(
        as_json,
        records,
        ("AGENT", "VERSION", "LOGIN", "SPEAKS", "REMARK"),
        [
            (
                record["name"],
                record["version"] or "–",
                record["login"],
                "yes" if record["speaks"] else "no",
                record["problem"] or record["notes"],
            )
            for record in records
        ],
        "No agent is installed. `cockpit agents` shows how to install one.",
    )
    if not as_json:
        _say_logins(records)
    if any(not record["speaks"] for record in records):
        ctx.exit(Exit.FAILED)


@agents.command(
    "login", epilog=examples("cockpit agents login codex", "cockpit agents login codex chatgpt")
)
@click.argument("name")
@click.argument("way", required=False)
def log_in_agent(name: str, way: str | None) -> None:
    """Log in an agent that does it by itself.

    It may open your browser.

    WAY is one of those that `cockpit agents check NAME` lists; it may be left out where there is one. A
    login in a terminal is printed as a command, for you to run.
    """
    require_no_agent("logging in")
    agent = load_agents(user_folder(os.environ)).find(name)
    show(asyncio.run(_log_in(agent, way)))


async def _log_in(agent: Agent, named: str | None) -> str:
    from cockpit.agents.acp_client.agent_connection import Abilities, AgentFailed, log_in
    from cockpit.agents.acp_client.login_ways import LoginWay, describe_login

    def choose(abilities: Abilities) -> LoginWay:
        ways = [way for way in abilities.logins if named in (None, way.id, way.name)]
        by_itself = [way for way in ways if way.kind == "agent"]
        if len(by_itself) != 1:
            offered = "; ".join(describe_login(agent, way) for way in abilities.logins)
            raise AgentFailed(
                f"{agent.title} does not log in by itself{f' by {named!r}' if named else ''}, or in more"
                f" than one way. Its ways: {offered or 'it lists none'}."
            )
        say(f"{agent.title} logs in: {by_itself[0].name}. Follow it in your browser.")
        return by_itself[0]

    way = await log_in(agent, os.environ, Path.cwd(), choose)
    return f"{agent.title} is logged in by {way.name}."


@agents.command(
    "add", epilog=examples("cockpit agents add mine -- my-agent --acp", "cockpit agents")
)
@click.argument("name")
@click.argument("command", nargs=-1, required=True)
@click.option("--title", default="", metavar="TEXT", help="Show this name. Default: NAME.")
@click.option(
    "--mode",
    default="",
    metavar="ID",
    help="Set this mode in new sessions. Default: the agent's own.",
)
def add_agent(name: str, command: tuple[str, ...], title: str, mode: str) -> None:
    """Add an agent of your own.

    COMMAND speaks the protocol on its standard streams.

    It writes agents/NAME.toml in your configuration folder. A built-in agent of that name is replaced.
    """
    require_no_agent("adding an agent")
    lines = [f"title = {_toml(title or name)}", "", "[acp]"]
    lines.append(f"command = [{', '.join(_toml(word) for word in command)}]")
    if mode:
        lines.append(f"mode = {_toml(mode)}")
    text = "\n".join(lines) + "\n"
    folder = user_folder(os.environ) / "agents"
    path = folder / f"{name}.toml"
    read_agent(name, text.encode(), str(path))
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise AgentInvalid(
            f"{path} exists; nothing was written. Edit or remove that file."
        ) from error
    except OSError as error:
        raise CockpitError(f"{path} cannot be written: {error.strerror}.") from error
    show(str(path))
    say(f"Check it with `cockpit agents check {name}`.")


async def _check_all(installations: Sequence[Installation]) -> list[dict[str, Any]]:
    # One after the other: most of them are large programs.
    return [await _check(entry) for entry in installations]


async def _check(entry: Installation) -> dict[str, Any]:
    from cockpit.agents.acp_client.agent_connection import shake_hands
    from cockpit.agents.acp_client.login_ways import describe_login

    record = {
        **describe_agent(entry),
        "version": "",
        "speaks": False,
        "problem": "",
        "abilities": None,
        "logins": [],
    }
    if not entry.program:
        return {**record, "problem": f"not installed. {say_how_to_install(entry)}".strip()}
    try:
        abilities = await shake_hands(entry.agent, os.environ, Path.cwd())
    except CockpitError as error:
        return {**record, "problem": str(error)}
    version = abilities.version or await read_version(entry, os.environ)
    ways = [
        {"id": way.id, "name": way.name, "kind": way.kind, "how": describe_login(entry.agent, way)}
        for way in abilities.logins
    ]
    record |= {"version": version, "speaks": True, "logins": ways}
    return {**record, "abilities": to_builtins(abilities)}


def _say_logins(records: Sequence[Mapping[str, Any]]) -> None:
    """Print how to log in to the agents to which the user may not be logged in."""
    for record in records:
        if record["login"] == "yes" or not record["logins"]:
            continue
        say(f"\n{record['name']}: log in, if you are not, in one of these ways:")
        for way in record["logins"]:
            say(f"  {way['how']}")


def _toml(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
