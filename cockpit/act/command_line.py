"""Command lines: the arguments of a plain one.

cockpit runs a program with arguments, never through a shell. A line that only a shell understands is
refused, with words that say what to do instead. See ``docs/reference/actions.md``.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

from cockpit.access.parse_shell import parse_shell
from cockpit.access.shell_syntax import Mark, Script, SimpleCommand, iter_words
from cockpit.core.errors import CockpitError

_OPERATOR_WORD = re.compile(
    r"^(?:;|;;|&|&&|\||\|\||\|&|[0-9]*>{1,2}(?:&[0-9]+)?|&>|<{1,3}|`|\(|\))$"
)
_ASSIGNMENT = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*\+?=")


class CommandRefused(CockpitError):
    """The command is not one that cockpit runs; the message says why and what to do."""

    code = "command_refused"


def split_command(command: str) -> tuple[str, ...]:
    """Return one command line as argv. Raises :class:`CommandRefused` for anything but plain words."""
    if not command.strip(" \t"):
        return check_argv(())
    script = parse_shell(command)
    marks = sorted(_shell_marks(script, command), key=lambda mark: mark.start)
    if marks:
        raise _refusal(marks[0])
    (item,) = script.items
    assert isinstance(item, SimpleCommand)  # noqa: S101 - a group has marks
    assigned = [f"{each.name}={each.value.text}" for each in item.assignments]
    return check_argv([*assigned, *(word.text for word in item.words)])


def _shell_marks(script: Script, command: str) -> Iterator[Mark]:
    """Everything in ``script`` that only a shell would do."""
    yield from script.separators
    yield from script.comments
    yield from script.errors
    if len(script.items) != 1:
        yield Mark("separator", "an empty command", 0)
    for item in script.items:
        if not isinstance(item, SimpleCommand):
            yield Mark("separator", item.kind, 0)
        for redirection in item.redirections:
            start = max(command.rfind(redirection.operator, 0, redirection.target.start), 0)
            yield Mark("separator", redirection.operator, start)
    for word in iter_words(script.items):
        # Test ids hold brackets, and a shell leaves them where no file matches.
        yield from (mark for mark in word.marks if mark.kind != "brackets")


def _refusal(mark: Mark) -> CommandRefused:
    column = mark.start + 1
    if mark.kind == "error":
        return CommandRefused(
            f"this command line cannot be read from column {column} on: {mark.text[:40]!r}. "
            "Close every quote, and quote text that is meant literally."
        )
    text = {"\n": "a line break", "\\\n": "a line continuation"}.get(
        mark.text, repr(mark.text[:40])
    )
    return CommandRefused(
        f"cockpit runs argv, not a shell; {text} at column {column} needs a shell. "
        "Call run once for each command, and quote text that is meant literally."
    )


def check_argv(argv: Sequence[str]) -> tuple[str, ...]:
    """Return ``argv`` as it will run. Raises :class:`CommandRefused` where it relies on a shell."""
    words = tuple(argv)
    if not words or not words[0].strip():
        raise CommandRefused("the command is empty. Name a program and its arguments.")
    for word in words:
        if "\0" in word:
            raise CommandRefused("an argument contains a NUL character, which no program can take.")
        if _OPERATOR_WORD.match(word):
            raise CommandRefused(
                f"cockpit runs argv, not a shell; {word!r} would reach {words[0]!r} as a plain "
                "argument. Call run once for each command."
            )
    if _ASSIGNMENT.match(words[0]):
        raise CommandRefused(
            f"cockpit runs argv, not a shell; set a variable with env: "
            f"{shlex.join(('env', *words))[:200]}"
        )
    if words[0].startswith("-"):
        raise CommandRefused(f"{words[0]!r} is an option, not a program.")
    return words
