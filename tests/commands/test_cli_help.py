"""The help of every command: whole summaries at 80 columns, options as phrases, examples that parse."""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path

import click
import pytest

from cockpit.cli import COMMANDS, root
from cockpit.commands.demo.demo import CHAIN_STEPS, OWN_CHAIN, OWN_SESSION, SESSION_STEPS
from cockpit.commands.exit_codes import Exit

COLUMNS = 80
LONGEST_SUMMARY = 45
ROOT = Path(__file__).resolve().parents[2]
GONE = (
    "start",
    "done",
    "block",
    "unblock",
    "reopen",
    "archive",
    "rework",
    "state",
    "files",
    "tail",
    "next",
    "board",
    "fail",
    "report",
)
MENTION = re.compile(r"(?<!`)`(cockpit [^`]+)`(?!`)")
BLOCK = re.compile(r"^```[a-z]*(?: .*)?\n(.*?)^```", re.DOTALL | re.MULTILINE)


def list_commands(name: str = "", command: click.Command = root) -> list[tuple[str, click.Command]]:
    """Every visible command by its words after ``cockpit``; the root has none."""
    if command.hidden and name != "debug":
        return []
    found = [(name, command)]
    if isinstance(command, click.Group):
        context = click.Context(command)
        for child in COMMANDS if command is root else command.list_commands(context):
            inner = command.get_command(context, child)
            assert inner is not None
            found += list_commands(f"{name} {child}".strip(), inner)
    return found


def parse(words: list[str]) -> None:
    """Parse ``cockpit WORDS`` as click does, down to the last subcommand, without running it."""
    context = root.make_context("cockpit", list(words))
    command: click.Command = root
    while isinstance(command, click.Group):
        rest = [*context._protected_args, *context.args]
        if not rest:
            # What was once a verb would pass for the name of a row.
            assert context.params.get("name") not in ("list", "show", *GONE), words
            assert command.invoke_without_command
            return
        name, inner, rest = command.resolve_command(context, rest)
        assert inner is not None
        command = inner
        context = command.make_context(name, list(rest), parent=context)


def list_mentions(path: Path) -> list[str]:
    """Every `cockpit …` in backticks of a page, or of the texts of a module, with X for what is put in."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        texts = [BLOCK.sub("", text).replace("\n", " ")]
    else:
        texts = [
            "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in parts)
            for node in ast.walk(ast.parse(text))
            for parts in (
                [node.values]
                if isinstance(node, ast.JoinedStr)
                else [[node]]
                if isinstance(node, ast.Constant) and isinstance(node.value, str)
                else []
            )
        ]
    return [mention for each in texts for mention in MENTION.findall(each)]


def test_the_reference_has_every_exit_code() -> None:
    page = (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
    assert [code for code in Exit if f"\n| {int(code)} | " not in page] == []


def test_the_help_of_every_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    commands = dict(list_commands())
    assert len(commands) > 60
    for name, command in commands.items():
        # With its settings: click keeps the help option of the first context, also for later runs here.
        settings = {**command.context_settings, "terminal_width": COLUMNS}
        context = click.Context(command, info_name=f"cockpit {name}", **settings)
        text, summary = command.get_help(context), command.get_short_help_str(limit=1000)
        assert summary.endswith(".") and (not name or len(summary) <= LONGEST_SUMMARY), summary
        assert name not in COMMANDS or COMMANDS[name][1] == summary
        usage, _, examples = text.partition("Examples:\n")
        assert "..." not in re.sub(r"\[?[A-Z_=…|]+\]?\.\.\.|COMMAND \[ARGS\]\.\.\.", "", text), name
        assert max(map(len, usage.splitlines())) <= COLUMNS, name
        assert name or "\n  debug" not in text, "diagnostics are out of the way"
        for child, inner in commands.items():
            if name and child.rpartition(" ")[0] == name:
                line = f"  {child.rpartition(' ')[2]} +{re.escape(inner.get_short_help_str(1000))}"
                assert re.search(f"^{line}$", text, re.MULTILINE), child
        for option in command.params:
            if isinstance(option, click.Option) and not option.hidden:
                assert (option.help or "").endswith("."), (name, option.opts)
        lines = [line.strip() for line in examples.splitlines()]
        assert any(line.split(" | ")[-1].startswith(f"cockpit {name}".strip()) for line in lines)
        for line in lines:
            words = shlex.split(line.split(" | ")[-1].partition(" > ")[0])
            assert words[0] == "cockpit", line
            parse(words[1:])


def test_the_commands_of_readme_and_docs_parse() -> None:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    count = 0
    for page in pages:
        for block in BLOCK.findall(page.read_text(encoding="utf-8").replace("\\\n", "")):
            for line in block.splitlines():
                line = line.removeprefix("$ ")
                if line.startswith(("cockpit ", ".venv/bin/cockpit ")):
                    command = re.split(r" > |  #", line, maxsplit=1)[0]
                    parse(shlex.split(command.rstrip(" &"), comments=True)[1:])
                    count += 1
    assert count > 20


def test_the_commands_that_the_demo_ends_with_exist() -> None:
    for step in (*SESSION_STEPS, *OWN_SESSION, *CHAIN_STEPS, *OWN_CHAIN):
        if step.startswith("{}"):
            parse(step.split()[1:])


def test_the_commands_that_texts_name_exist() -> None:
    """In sentences of documents and of the program; values and arguments may be left out there."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    wrong, count = [], 0
    for path in [*pages, *sorted((ROOT / "cockpit").rglob("*.py"))]:
        for mention in list_mentions(path):
            text = re.split(r" [>|<] |; ", " ".join(mention.split()))[0]
            words = [word for word in shlex.split(text)[1:] if word[:1] not in ("[", "…", ".")]
            if not words or words[0] in ("X", "COMMAND"):
                continue
            count += 1
            try:
                parse(words)
            except (
                click.exceptions.Exit,
                click.BadParameter,
                click.BadOptionUsage,
                click.exceptions.NoArgsIsHelpError,
            ):
                continue
            except (click.UsageError, AssertionError) as error:
                wrong.append(f"{path.relative_to(ROOT)}: {mention}: {error}")
    assert wrong == [], "\n".join(wrong)
    assert count > 500
