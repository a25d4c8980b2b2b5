"""``cockpit man``: the manual page, written from the commands that ``--help`` reads."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from itertools import pairwise

import click

from cockpit import __version__
from cockpit.cli_options import examples


@click.command(
    short_help="Print the manual page.",
    epilog=examples("cockpit man > ~/.local/share/man/man1/cockpit.1"),
)
def man() -> None:
    """Print the manual page of cockpit in roff, for `man`.

    It has every command with its options and examples. `cockpit man | man -l -` shows it at once.
    """
    from cockpit.commands.terminal import show

    show(manual_page(click.get_current_context().find_root().command))


def manual_page(root: click.Command) -> str:
    """Return the manual page of ``root`` and all commands below it, in roff's ``man`` macros."""
    from cockpit.commands.exit_codes import EXIT_MEANINGS
    from cockpit.config.environment_variables import OTHER_VARIABLES

    purpose, _, rest = inspect.cleandoc(root.help or "").partition("\n\n")
    lines = [
        f'.TH COCKPIT 1 "" "cockpit {__version__}" "User Commands"',
        ".SH NAME",
        f"cockpit \\- {_text(purpose.rstrip('.').replace('Direct', 'direct', 1))}",
        ".SH SYNOPSIS",
        *_usage("cockpit", root),
        ".br",
        "\\fBcockpit\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR] [\\fIARGS\\fR]",
        ".SH DESCRIPTION",
        *_paragraphs(rest),
        ".SH OPTIONS",
        *_options(root),
        ".SH COMMANDS",
    ]
    for path, command in _visible_commands(root, "cockpit"):
        lines += [f".SS {_text(path)}", *_usage(path, command), *_paragraphs(command.help or "")]
        lines += [*_options(command), *_examples(command)]
    lines.append(".SH EXIT STATUS")
    for code, meaning in EXIT_MEANINGS.items():
        lines += _item(f"\\fB{int(code)}\\fR", f"{meaning}.")
    lines.append(".SH ENVIRONMENT")
    for name, meaning in OTHER_VARIABLES.items():
        lines += _item(f"\\fB{_text(name)}\\fR", f"{meaning}.")
    lines += [
        ".PP",
        "Every setting has a variable, too; \\fBcockpit settings list\\fR prints them.",
    ]
    lines += [".SH EXAMPLES", ".nf", *map(_line, _example_lines(root)), ".fi"]
    lines += [".SH SEE ALSO", ".BR git (1)"]
    return "\n".join(_without_empty_paragraphs(lines))


def _visible_commands(group: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    """Yield every command below ``group`` with its words, depth first; groups that only hold others too."""
    if not isinstance(group, click.Group):
        return
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is not None and not command.hidden:
            yield f"{path} {name}", command
            yield from _visible_commands(command, f"{path} {name}")


def _usage(path: str, command: click.Command) -> list[str]:
    context = click.Context(command, info_name=path, **command.context_settings)
    pieces = " ".join(command.collect_usage_pieces(context))
    return [f"\\fB{_text(path)}\\fR {_text(pieces)}".rstrip()]


def _options(command: click.Command) -> list[str]:
    context = click.Context(command, **command.context_settings)
    help_option = command.get_help_option(context)
    lines = []
    for option in command.get_params(context):
        record = option.get_help_record(context)
        if record is not None and record[1] and option is not help_option:
            names, text = record
            lines += _item(f"\\fB{_text(names)}\\fR", text)
    return lines


def _item(tag: str, text: str) -> list[str]:
    return [".TP", tag, _line(" ".join(text.split()))]


def _examples(command: click.Command) -> list[str]:
    written = _example_lines(command)
    return [".PP", ".nf", ".RS", *map(_line, written), ".RE", ".fi"] if written else []


def _example_lines(command: click.Command) -> list[str]:
    return [
        line.strip() for line in (command.epilog or "").partition("Examples:\n")[2].splitlines()
    ]


def _paragraphs(text: str) -> list[str]:
    lines = []
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        if paragraph.startswith("\b\n"):
            body = [_line(line.strip()) for line in paragraph.splitlines()[1:]]
            lines += [".PP", ".nf", *body, ".fi"]
        elif paragraph.strip():
            lines += [".PP", _line(" ".join(paragraph.split()))]
    return lines


def _without_empty_paragraphs(lines: list[str]) -> Iterator[str]:
    """Leave out a paragraph break right after a heading, which has one of its own."""
    yield lines[0]
    for before, line in pairwise(lines):
        if not (line == ".PP" and before.startswith((".SH", ".SS"))):
            yield line


def _line(text: str) -> str:
    """Return a line of text that roff does not take for a request."""
    escaped = _text(text)
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


def _text(text: str) -> str:
    """Return ``text`` as roff prints it: backslashes and hyphens are meant as they are."""
    bold = re.sub(r"`([^`]*)`", "\0\\1\1", text.replace("\b", ""))
    escaped = bold.replace("\\", "\\e").replace("-", "\\-")
    plain = "".join(letter if letter.isascii() else f"\\[u{ord(letter):04X}]" for letter in escaped)
    return plain.replace("\0", "\\fB").replace("\1", "\\fR")
