"""From words to argv, without a shell in between.

cockpit runs a program with arguments. What only a shell would understand is refused with words that
say what to do instead, never passed on half understood. Source: design of Act ("commands are argv
lists, never a shell string").
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

from cockpit.core.errors import CockpitError

MAX_SCRIPT = 8_000
"""The longest nested shell script that is taken apart, in characters."""

MAX_SUBSTITUTIONS = 40
"""The most command substitutions in a script that is taken apart."""

_OPERATORS = frozenset(";&|<>()`\n")
_GLOBS = frozenset("*?")  # not "[": test ids hold it, and a shell leaves it where nothing matches
_OWN_TOKENS = re.compile(r"^(?:;|;;|&|&&|\||\|\||\|&|[0-9]*>{1,2}(?:&[0-9]+)?|&>|<{1,3}|`|\(|\))$")
_ASSIGNMENT = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*\+?=")
_BRACES = re.compile(r"\{[^\s{}]*(?:,|\.\.)[^\s{}]*\}")
_SUBSTITUTION = re.compile(r"[$<>]\(|`")


class CommandRefused(CockpitError):
    """The command is not one that cockpit runs; the message says why and what to do."""

    code = "command_refused"


def split_command(command: str) -> tuple[str, ...]:
    """One command line as argv. Raises :class:`CommandRefused` for anything but plain words."""
    words: list[str] = []
    word: list[str] | None = None
    at = 0
    while at < len(command):
        character = command[at]
        if character in " \t":
            words += [] if word is None else ["".join(word)]
            word, at = None, at + 1
            continue
        found = _shell_syntax(command, at, quoted=False, starts=word is None)
        if found:
            raise _refused(found, at)
        word = [] if word is None else word
        if character == "'":
            end = command.find("'", at + 1)
            if end < 0:
                raise CommandRefused(f"the quote at column {at + 1} does not close.")
            word.append(command[at + 1 : end])
            at = end + 1
        elif character == '"':
            at = _double_quoted(command, at, word)
        elif character == "\\":
            word.append(command[at + 1 : at + 2])
            at += 2
        else:
            word.append(character)
            at += 1
    words += [] if word is None else ["".join(word)]
    return check_argv(words)


def _double_quoted(command: str, opened: int, word: list[str]) -> int:
    """Read what stands in double quotes into ``word``; returns where it goes on."""
    at = opened + 1
    while at < len(command):
        character, following = command[at], command[at + 1 : at + 2]
        if character == '"':
            return at + 1
        found = _shell_syntax(command, at, quoted=True, starts=False)
        if found:
            raise _refused(found, at)
        # Inside double quotes a backslash stands for itself but before these.
        escape = character == "\\" and following in {'"', "\\", "$", "`"} and following != ""
        word.append(following if escape else character)
        at += 2 if escape else 1
    raise CommandRefused(f"the quote at column {opened + 1} does not close.")


def _refused(what: str, at: int) -> CommandRefused:
    return CommandRefused(
        f"cockpit runs argv, not a shell; {what} at column {at + 1} would not do what it does there. "
        "Call run once for each command, and quote what is meant literally."
    )


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


def _shell_syntax(command: str, at: int, *, quoted: bool, starts: bool) -> str:
    """What a shell would do at this place beside splitting words; '' for nothing."""
    character, following = command[at], command[at + 1 : at + 2]
    if character == "`":
        return "'`'"
    if character == "\\" and following in {"\n", ""}:
        return "a line continuation"
    named = following.isalnum() or (following != "" and following in "({_@*#?$!-")
    if character == "$" and (named or (not quoted and following != "" and following in "'\"")):
        return repr(character + following)
    if quoted:
        return ""
    if character in _OPERATORS:
        return repr(character)
    if character in _GLOBS:
        return f"the unquoted glob {character!r}"
    if starts and character in "~#":
        return repr(character)
    return repr(character) if character == "{" and _BRACES.match(command, at) else ""


def readable(script: str) -> bool:
    """Whether the script is small enough for :func:`nested_commands`."""
    return len(script) <= MAX_SCRIPT and len(_SUBSTITUTION.findall(script)) <= MAX_SUBSTITUTIONS


def nested_commands(script: str) -> Iterator[tuple[str, ...] | None]:
    """Every command that a shell could run out of ``script``, in doubt more than it would.

    For judging only. None stands for a part that could not be read, which is to be held dangerous.
    """
    yield from _commands(script)
    for match in _SUBSTITUTION.finditer(script):
        yield from _commands(script[match.end() :])


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
