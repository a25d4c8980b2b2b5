"""From words to argv, without a shell in between.

cockpit runs a program with arguments. What only a shell would understand is refused with words that
say what to do instead, never passed on half understood. Source: design of Act ("commands are argv
lists, never a shell string").
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

from cockpit.store.errors import CockpitError

MAX_SCRIPT = 20_000
"""The longest nested shell script that is taken apart, in characters."""

_OPERATORS = frozenset(";&|<>()`\n")
_GLOBS = frozenset("*?")  # not "[": test ids hold it, and a shell leaves it where nothing matches
_OWN_TOKENS = re.compile(r"^(?:;|;;|&|&&|\||\|\||\|&|[0-9]*>{1,2}(?:&[0-9]+)?|&>|<{1,3}|`|\(|\))$")
_ASSIGNMENT = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*\+?=")
_SUBSTITUTION = re.compile(r"[$<>]\(|`")


class CommandRefused(CockpitError):
    """The command is not one that cockpit runs; the message says why and what to do."""

    code = "command_refused"


def split_command(command: str) -> tuple[str, ...]:
    """One command line as argv. Raises :class:`CommandRefused` for anything but plain words."""
    found = _shell_syntax(command)
    if found is not None:
        column, what = found
        raise CommandRefused(
            f"cockpit runs argv, not a shell; {what} at column {column} would not do what it does "
            "there. Call run once for each command, and quote what is meant literally."
        )
    try:
        words = shlex.split(command, comments=False, posix=True)
    except ValueError as error:
        raise CommandRefused(f"the quotes of the command do not close ({error}).") from error
    return check_argv(words)


def check_argv(argv: Sequence[str]) -> tuple[str, ...]:
    """``argv`` as it will run. Raises :class:`CommandRefused` for what only a shell would take."""
    words = tuple(argv)
    if not words or not words[0].strip():
        raise CommandRefused("the command is empty. Name a program and its arguments.")
    for word in words:
        if "\0" in word:
            raise CommandRefused("an argument holds a NUL character, which no program can take.")
        if _OWN_TOKENS.match(word):
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


def _shell_syntax(command: str) -> tuple[int, str] | None:
    """Where a shell would do more than split words: (1-based column, what), or None."""
    quote = ""
    skip = False
    word_start = True
    for column, character in enumerate(command, 1):
        if skip:
            skip, word_start = False, False
            continue
        if quote == "'":
            quote = "" if character == "'" else quote
            continue
        if character == "\\":
            if command[column : column + 1] == "\n" and not quote:
                return column, "a line continuation"
            skip = True
            continue
        following = command[column : column + 1]
        if character == "`":
            return column, "'`'"
        if character == "$" and (following.isalnum() or following in set("({_@*#?$!-'\"")):
            if not (quote and following in {'"', "'"}):
                return column, f"{character + following!r}"
        elif quote == '"':
            quote = "" if character == '"' else quote
        elif character in "\"'":
            quote, word_start = character, False
        elif character in _OPERATORS:
            return column, repr(character)
        elif character in _GLOBS:
            return column, f"the unquoted glob {character!r}"
        elif word_start and character in "~#":
            return column, repr(character)
        elif character == "{" and re.match(
            r"\{[^\s{}]*(?:,|\.\.)[^\s{}]*\}", command[column - 1 :]
        ):
            return column, "'{'"
        else:
            word_start = character.isspace()
    return None


def nested_commands(script: str) -> Iterator[tuple[str, ...] | None]:
    """Every command that a shell could run out of ``script``, in doubt more than it would.

    For judging only. None stands for a part that could not be read, which is to be held dangerous.
    """
    if len(script) > MAX_SCRIPT:
        yield None
        return
    pieces = [script]
    pieces += [script[match.end() :] for match in _SUBSTITUTION.finditer(script)][:200]
    if len(pieces) > 200:
        yield None
    for piece in pieces:
        yield from _commands(piece)


def _commands(script: str) -> Iterator[tuple[str, ...] | None]:
    text = re.sub(r"\\\n", " ", script).replace("\n", " ; ")
    for attempt in (text, re.sub(r"[\"']", " ", text)):
        lexer = shlex.shlex(attempt, posix=True, punctuation_chars=";&|<>()`{}!")
        lexer.commenters = ""
        try:
            tokens = list(lexer)
        except ValueError:
            # Quotes that do not close, as in the rest of a substitution: read on without them.
            yield None
            continue
        yield from _split(tokens)
        return


_KEYWORDS = frozenset(
    [
        "if",
        "then",
        "else",
        "elif",
        "fi",
        "do",
        "done",
        "while",
        "until",
        "for",
        "in",
        "case",
        "esac",
        "function",
        "select",
        "coproc",
        "time",
        "!",
        "{",
        "}",
        "[[",
        "]]",
    ]
)


def _split(tokens: list[str]) -> Iterator[tuple[str, ...]]:
    command: list[str] = []
    redirected = False
    for token in [*tokens, ";"]:
        if token and not set(token) - set(";&|()`{}!"):
            if command:
                yield tuple(command)
            command, redirected = [], False
        elif token and not set(token) - set("<>&|"):
            redirected = True
        elif redirected:
            redirected = False
        elif command or not (_ASSIGNMENT.match(token) or token in _KEYWORDS):
            command.append(token)
