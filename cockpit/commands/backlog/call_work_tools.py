"""How the work commands call the work tools: the same table that agents are served from."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from cockpit.commands.command_caller import find_caller
from cockpit.commands.open_project import ensure_root_token, find_project, open_store, read_store
from cockpit.store.backlog.epics_and_stories import STATUSES

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping, Sequence

    from cockpit.store.db.transaction import Tx

AS_JSON = click.option("--json", "as_json", is_flag=True, help="As JSON.")
FIELDS = click.option(
    "--fields",
    type=click.Choice(["minimal", "standard", "full"]),
    help="How much of each: minimal is id, title and status.",
)
LIMIT = click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True)
OFFSET = click.option("--offset", type=click.IntRange(0, 2**31), default=0, help="Skip so many.")
STATUS = click.option("--status", type=click.Choice(STATUSES), help="Only these.")
STANDING = click.option("--status", type=click.Choice(STATUSES), help="How it stands.")
PRIORITY = click.option(
    "--priority", type=click.Choice(["P0", "P1", "P2", "P3"], case_sensitive=False)
)
DESCRIPTION = click.option("--description", metavar="TEXT|-", help="-: from standard input.")

UNCAPPED = 10**9
"""A person's answer is as long as it is; the cap is for models."""


def read_with_tool(name: str, empty: Any = None, **arguments: Any) -> Any:
    """What a tool that reads answers; without a store ``empty``, or ``NotFound`` where that is None."""

    def read(connection: sqlite3.Connection) -> Any:
        from cockpit.access.principals import PERSON
        from cockpit.backlog.tools.tool_table import find_work_tool

        tool = find_work_tool(name)
        return tool.run(connection, PERSON, tool.parameters(**arguments), cap_tokens=UNCAPPED)

    return read_store(read, empty=empty)


def write_with_tool(name: str, token: str, **arguments: Any) -> Any:
    """What a tool that writes answers, called by the holder of ``token`` or the person."""
    return write_with_tool_each(name, token, [arguments])[0]


def write_with_tool_each(name: str, token: str, calls: Sequence[Mapping[str, Any]]) -> list[Any]:
    """What a tool that writes answers to each of ``calls``: all of them happen, or none."""
    from cockpit.backlog.tools.tool_table import find_work_tool

    tool = find_work_tool(name)

    def step(tx: Tx) -> list[Any]:
        caller = find_caller(tx, token)
        return [
            tool.run(tx, caller, tool.parameters(**arguments), cap_tokens=UNCAPPED)
            for arguments in calls
        ]

    found: list[Any] = write_store(step)
    return found


def write_store(step: Any) -> Any:
    """What ``step`` gives, run in one transaction of this project's store."""
    place = find_project()
    ensure_root_token(place, quiet=True)
    with open_store(place) as store:
        return store.write_now(step)


def authorize_writer(tx: Tx, token: str, what: str) -> str:
    """The name of who writes. Raises ``TokenRefused``, and ``NotAllowed`` without ``work.write``."""
    from cockpit.access.token_scopes import WORK_WRITE
    from cockpit.loop.decisions.profile_change_results import actor_of

    caller = find_caller(tx, token)
    caller.require(WORK_WRITE, what)
    return actor_of(caller)


def read_text_argument(text: str | None) -> str | None:
    """``text``, or standard input for ``-``."""
    return sys.stdin.read() if text == "-" else text


def say_more(answer: Any) -> None:
    """Say on stderr where a list goes on."""
    from cockpit.commands.terminal import say

    if "more" in answer:
        say(f"{answer['more']} more: --offset {answer['next_offset']}")
