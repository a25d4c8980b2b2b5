"""The help of every command: whole summaries at 80 columns, options as phrases, examples that parse."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import click
import pytest

from cockpit.cli import COMMANDS, root

COLUMNS = 80
LONGEST_SUMMARY = 45
VERBS = {
    *("Answer", "Estimate", "Fork", "Log", "Rename", "Restore", "Go"),
    *("Add", "Approve", "Archive", "Block", "Change", "Check", "Compare", "Discuss", "Explain"),
    *("Export", "Import", "Inspect", "Install", "Issue", "Judge", "Keep", "List", "Manage"),
    *(
        "Accept",
        "Forget",
        "Grow",
        "Keep",
        "Suspend",
        "Mark",
        "Measure",
        "Merge",
        "Print",
        "Propose",
        "Recompile",
        "Record",
        "Reject",
        "Remove",
    ),
    *("Count", "Index", "Move", "Search", "Take", "Trust"),
    *("Reopen", "Replay", "Resume", "Review", "Revoke", "Roll", "Run", "Serve", "Set", "Show"),
    *("Stop", "Suggest", "Try", "Turn", "Unblock", "Unpin", "Verify", "Work", "Write", "Direct"),
}
OPTION_VERBS = VERBS | {
    *("Act", "Allow", "Append", "Apply", "Clear", "Copy", "Decide", "Do", "Draw", "Edit"),
    *("End", "Follow", "Forget"),
    *("Let", "Leave", "Listen", "Make", "Name", "Narrow", "Offer", "Open", "Put", "Read", "Repeat"),
    *("Refuse", "Replace"),
    *("Restore", "Return", "Send", "Skip", "Start", "Use", "Wait", "With", "Prune", "Notify"),
}


def subcommands(name: str, command: click.Command) -> list[tuple[str, click.Command]]:
    """Every command below a group, at any depth."""
    commands: list[tuple[str, click.Command]] = []
    for child in command.commands if isinstance(command, click.Group) else ():
        path = f"{name} {child}"
        commands += [(path, command.commands[child]), *subcommands(path, command.commands[child])]
    return commands


def tree() -> list[tuple[str, click.Command]]:
    """Every visible command by its words after ``cockpit``; the root has none."""
    commands: list[tuple[str, click.Command]] = [("", root)]
    context = click.Context(root)
    for name in COMMANDS:
        command = root.get_command(context, name)
        assert command is not None
        commands.append((name, command))
        commands += subcommands(name, command)
    return [(name, command) for name, command in commands if not command.hidden]


TREE = tree()
each_command = pytest.mark.parametrize(("name", "command"), TREE, ids=[name for name, _ in TREE])


def help_text(name: str, command: click.Command) -> str:
    return command.get_help(
        click.Context(command, info_name=f"cockpit {name}".strip(), terminal_width=COLUMNS)
    )


def examples_of(command: click.Command) -> list[str]:
    marker, _, lines = (command.epilog or "").partition("Examples:\n")
    assert marker == "\b\n", "the help ends with its examples"
    return [line.strip() for line in lines.splitlines()]


def summary_of(command: click.Command) -> str:
    return command.get_short_help_str(limit=1000)


@each_command
def test_a_summary_is_whole_and_starts_with_a_verb(name: str, command: click.Command) -> None:
    summary = summary_of(command)
    if name:
        assert 0 < len(summary) <= LONGEST_SUMMARY, f"{len(summary)}: {summary}"
    assert summary.split()[0].strip(",") in VERBS, summary
    assert summary.endswith(".")


@pytest.mark.parametrize("name", COMMANDS)
def test_the_table_of_commands_has_the_summary_of_the_command(name: str) -> None:
    command = root.get_command(click.Context(root), name)
    assert command is not None
    assert COMMANDS[name][1] == summary_of(command)


@each_command
def test_no_line_of_help_is_cut_off(name: str, command: click.Command) -> None:
    text = help_text(name, command)
    assert "..." not in re.sub(r"\[?[A-Z_=…|]+\]?\.\.\.|COMMAND \[ARGS\]\.\.\.", "", text)
    assert max(len(line) for line in text.partition("Examples:")[0].splitlines()) <= COLUMNS


@each_command
def test_help_ends_with_an_example(name: str, command: click.Command) -> None:
    lines = examples_of(command)
    assert lines
    assert help_text(name, command).rstrip().endswith(lines[-1])
    assert any(line.split(" | ")[-1].startswith(f"cockpit {name}".strip()) for line in lines)


def parse(words: list[str]) -> None:
    """Parse ``cockpit WORDS`` as click does, down to the last subcommand, without running it."""
    context = root.make_context("cockpit", list(words))
    command: click.Command = root
    while isinstance(command, click.Group):
        rest = [*context._protected_args, *context.args]
        if not rest:
            assert command.invoke_without_command
            return
        name, found, rest = command.resolve_command(context, rest)
        assert found is not None
        command = found
        context = command.make_context(name, list(rest), parent=context)


@each_command
def test_examples_parse(
    name: str, command: click.Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for line in examples_of(command):
        words = shlex.split(line.split(" | ")[-1].partition(" > ")[0])
        assert words[0] == "cockpit", line
        parse(words[1:])


@each_command
def test_help_of_an_option_is_a_phrase(name: str, command: click.Command) -> None:
    for option in command.params:
        if not isinstance(option, click.Option) or option.hidden:
            continue
        text = option.help or ""
        assert text.endswith("."), f"{option.opts}: {text}"
        assert text.split()[0].strip(",") in OPTION_VERBS, f"{option.opts}: {text}"


def test_summaries_are_whole_in_a_terminal_of_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "COLUMNS", str(COLUMNS))
    for name, command in TREE:
        if isinstance(command, click.Group):
            text = help_text(name, command)
            children = COMMANDS if command is root else command.commands
            for child in children:
                path = f"{name} {child}".strip()
                summary = summary_of(dict(TREE)[path])
                assert re.search(
                    rf"^  {re.escape(child)} +{re.escape(summary)}$", text, re.MULTILINE
                )


ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```[a-z]*\n(.*?)^```", re.DOTALL | re.MULTILINE)


def documented_commands() -> list[tuple[str, str]]:
    """Every ``cockpit …`` line in a code block of README and docs, with its page."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [
        (str(page.relative_to(ROOT)), line)
        for page in pages
        for block in BLOCK.findall(page.read_text(encoding="utf-8").replace("\\\n", ""))
        for line in block.splitlines()
        if line.removeprefix("$ ").startswith(("cockpit ", ".venv/bin/cockpit "))
    ]


@pytest.mark.parametrize(("page", "line"), documented_commands())
def test_a_documented_command_parses(page: str, line: str) -> None:
    command = re.split(r" > |  #", line.removeprefix("$ "), maxsplit=1)[0]
    words = shlex.split(command.rstrip(" &"), comments=True)
    parse(words[1:])
