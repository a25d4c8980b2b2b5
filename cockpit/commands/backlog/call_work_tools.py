"""Call the tools of the backlog, which agents use too, from commands; and options of these commands."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cockpit.collections.work.tasks import UNCAPPED
from cockpit.commands.caller_rights import find_caller
from cockpit.commands.open_project import (
    WrongUse,
    ensure_root_token,
    find_project,
    open_store,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cockpit.store.db.transaction import Tx

PRIORITY = click.option(
    "--priority",
    type=click.Choice(["P0", "P1", "P2", "P3"], case_sensitive=False),
    help="Use this priority; P0 is the most urgent.",
)
DESCRIPTION = click.option(
    "--description", metavar="TEXT|-", help="Set this description; - reads it from standard input."
)


def write_with_tool(name: str, **arguments: Any) -> Any:
    """Call a tool that writes, as the holder of ``COCKPIT_TOKEN`` or as the user."""
    return write_with_tools([(name, arguments)])[0]


def write_with_tools(calls: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Any]:
    """Call tools that write, each with its arguments, in one transaction; return the answers."""
    from cockpit.backlog.tools.tool_table import find_work_tool

    def step(tx: Tx) -> list[Any]:
        caller = find_caller(tx)
        tools = [(find_work_tool(name), arguments) for name, arguments in calls]
        return [
            tool.run(tx, caller, tool.parameters(**arguments), cap_tokens=UNCAPPED)
            for tool, arguments in tools
        ]

    answers: list[Any] = write_store(step)
    return answers


def write_store(step: Any) -> Any:
    """Run ``step`` in one transaction of this project's store and return its result."""
    place = find_project()
    ensure_root_token(place, quiet=True)
    with open_store(place) as store:
        return store.write_now(step)


def authorize_writer(tx: Tx, purpose: str) -> str:
    """Return the name of the caller. Raises ``TokenRefused``, and ``NotAllowed`` without ``work.write``."""
    from cockpit.access.principals import journal_actor
    from cockpit.access.token_scopes import WORK_WRITE

    caller = find_caller(tx)
    caller.require(WORK_WRITE, purpose)
    return journal_actor(caller)


def read_text_argument(text: str | None) -> str | None:
    """Return ``text``, or standard input for ``-``."""
    return sys.stdin.read() if text == "-" else text


def read_source(source: str, *, errors: str = "strict") -> str:
    """Return the text of a file, or standard input for ``-``. Raises ``WrongUse``."""
    try:
        return (
            sys.stdin.read()
            if source == "-"
            else Path(source).read_text(encoding="utf-8", errors=errors)
        )
    except (OSError, UnicodeDecodeError) as error:
        raise WrongUse(f"{source} cannot be read: {error}") from error
