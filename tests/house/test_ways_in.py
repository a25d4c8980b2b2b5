"""The page of ways in: every key, command and name that it has is there."""

from __future__ import annotations

import re
from pathlib import Path

import click

import cockpit
from cockpit.act.model_tools import TOOL_RECORDS
from cockpit.app.actions.registry import ACTIONS
from cockpit.cli import root
from cockpit.loop.session_state.read_session_state import SessionState
from cockpit.mcp.tool_registry import TOOLS
from cockpit.observe.scope_items import parse_item

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "ways-in.md"
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.read_text("utf-8").splitlines()
    if line.startswith("| ")
][1:]
ROWS = [row for row in ROWS if set(row[0]) != {"-"}]


def names(cell: str) -> list[str]:
    return re.findall("`([^`]+)`", cell)


def test_every_way_in_is_there() -> None:
    assert len(ROWS) >= 20
    for _, keys, commands, others, _ in ROWS:
        for key in names(keys):
            assert any(key in action.keys for action in ACTIONS), key
        for words in names(commands):
            command: click.Command | None = root
            for word in words.split()[1:]:
                assert isinstance(command, click.Group), words
                command = command.get_command(click.Context(command), word)
            assert command is not None, words
        for name in names(others):
            assert is_reachable(name), name


def is_reachable(name: str) -> bool:
    """Whether a scope item, a tool of an agent, or a name of the package is what the page says."""
    if ":" in name:
        return parse_item(name).kind == name.partition(":")[0]
    if name in TOOL_RECORDS or name in {tool.name for tool in TOOLS}:
        return True
    first, _, rest = name.partition(".")
    owner = SessionState if first == "SessionState" else getattr(cockpit, first)
    fields = getattr(owner, "__struct_fields__", ())
    return not rest or hasattr(owner, rest) or rest in fields
