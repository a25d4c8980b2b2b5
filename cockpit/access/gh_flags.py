"""The words of a ``gh`` line: split as a shell splits them, flags read as ``gh`` reads them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from cockpit.access.gh_table import Spec
from cockpit.core.errors import CockpitError

_OPERATORS = frozenset(";&|<>()")


class GhRefused(CockpitError):
    """The command is not one that cockpit runs; the message says why and what to write instead."""

    code = "gh_refused"


class GhArguments:
    """The words of one command, sorted: positional, flags by long name, and the body apart."""

    def __init__(self) -> None:
        self.positional: list[str] = []
        self.flags: list[tuple[str, str | None]] = []
        self.body: str | None = None

    def value(self, name: str) -> str | None:
        return next((value for flag, value in self.flags if flag == name), None)

    def has(self, name: str) -> bool:
        return any(flag == name for flag, _ in self.flags)


def split_words(command: str | Sequence[str]) -> list[str]:
    """Return the words after ``gh``. Raises :class:`GhRefused` for shell syntax and open quotes.

    No shell runs: ``$x`` inside a value stays text, and ``#24`` is a number, not a comment.
    """
    words = _split_line(command) if isinstance(command, str) else list(command)
    if any("\0" in word for word in words):
        raise GhRefused("the command contains a NUL character")
    previous = ""
    for word in words:
        if ((word and set(word) <= _OPERATORS) or word.startswith("$(")) and previous not in {
            "--body",
            "-b",
        }:
            raise GhRefused(
                f"{word[:20]!r} is shell syntax, and no shell runs here: give one gh command"
            )
        previous = word
    return words[1:] if words[:1] == ["gh"] else words


def _split_line(line: str) -> list[str]:
    lexer = shlex.shlex(line.strip(), posix=True, punctuation_chars=True)
    # A line break ends a command in a shell: here it is part of a word, which no command takes.
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    try:
        return list(lexer)
    except ValueError as error:
        raise GhRefused(
            f"the command cannot be split into words ({error}): check its quotes"
        ) from error


def read_arguments(words: list[str], spec: Spec, name: str) -> GhArguments:
    """Sort ``words`` into flags of ``spec`` and the rest; ``name`` is the command, for errors."""
    arguments = GhArguments()
    rest = iter(words)
    for word in rest:
        if word == "--":
            raise GhRefused("`--` is not supported here: write flags by name and leave it out")
        if not word.startswith("-") or word == "-":
            arguments.positional.append(word)
            continue
        flag, value = _flag(word, spec)
        kind = spec.kind(flag)
        if kind is None:
            raise GhRefused(
                f"`{name}` takes no {word.split('=')[0]} here; it takes {spec.listed()}"
            )
        if kind == "bool":
            if value is not None:
                raise GhRefused(f"--{flag} takes no value")
            if arguments.has(flag):
                raise GhRefused(f"--{flag} is given twice")
            arguments.flags.append((flag, None))
            continue
        if value is None:
            value = next(rest, None)
        if value is None:
            raise GhRefused(f"--{flag} needs a value")
        _take(arguments, flag, value, spec)
    return arguments


def _take(arguments: GhArguments, flag: str, value: str, spec: Spec) -> None:
    if flag == "body":
        if arguments.body is not None:
            raise GhRefused("--body is given twice")
        arguments.body = value
    elif flag == "body-file":
        raise GhRefused("`--body-file` cannot be used here: put the text into --body")
    elif value.startswith("-"):
        raise GhRefused(f"the value of --{flag} may not begin with a dash: {value[:40]!r}")
    elif "$(" in value:
        raise GhRefused(f"the value of --{flag} contains shell syntax, and no shell runs here")
    elif arguments.has(flag) and spec.kind(flag) != "list":
        raise GhRefused(f"--{flag} is given twice")
    else:
        arguments.flags.append((flag, value))


def _flag(word: str, spec: Spec) -> tuple[str, str | None]:
    """Split a flag word into its long name and attached value, as gh does."""
    if word.startswith("--"):
        flag, equals, value = word[2:].partition("=")
        return flag, value if equals else None
    long = spec.short.get(word[1], word[1:])
    attached = word[2:]
    if not attached:
        return long, None
    if spec.kind(long) in {None, "bool"}:
        raise GhRefused(f"{word!r}: write each flag by itself and by its long name")
    return long, attached.removeprefix("=")
