"""Command lines: the arguments of a plain one, and every command that a shell script could run.

cockpit runs a program with arguments, never through a shell. A line that only a shell understands is
refused, with words that say what to do instead. See ``docs/reference/actions.md``.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

from msgspec import Struct

from cockpit.access.parse_shell import parse_shell
from cockpit.access.shell_syntax import Mark, Script, SimpleCommand, Word, iter_items, iter_words
from cockpit.core.errors import CockpitError

MAX_SCRIPT = 8_000
"""The longest script whose commands are listed, in characters."""

MAX_SUBSTITUTIONS = 40
"""The most command substitutions in a script whose commands are listed."""

_OPERATOR_WORD = re.compile(
    r"^(?:;|;;|&|&&|\||\|\||\|&|[0-9]*>{1,2}(?:&[0-9]+)?|&>|<{1,3}|`|\(|\))$"
)
_ASSIGNMENT = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*\+?=")
_SUBSTITUTION = re.compile(r"[$<>]\(|`")
_KEYWORDS = frozenset(
    "if then else elif fi do done while until for in case esac function select coproc ! { }".split()  # noqa: SIM905
)
_SHELL_NAME = re.compile(r"(?:sh|eval|source|xargs|parallel|env)$")
_BRACES = re.compile(r"\{(?=[^\s{}]*+\})([^\s{}]*?,[^\s{}]*+)\}")
_MOST_WORDS = 64
_DEEPEST = 8
_QUOTES = re.compile(r"[\"'\\]")
_PIECES = re.compile(r"[;&|()<>{}`!\n]+")


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


class ScriptCommand(Struct, frozen=True):
    """One command that a script could run.

    ``assigned`` are the variables set for it, ``writes`` the files that its output goes to. A
    ``guess`` comes from text that may be no command at all, such as a line of a here-document.
    """

    argv: tuple[str, ...]
    assigned: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    guess: bool = False


def is_short_enough(script: str) -> bool:
    """Whether :func:`script_commands` accepts the script."""
    return len(script) <= MAX_SCRIPT and len(_SUBSTITUTION.findall(script)) <= MAX_SUBSTITUTIONS


def script_commands(text: str) -> Iterator[ScriptCommand | None]:
    """Yield every command that a shell could run out of ``text``, in doubt more than it would.

    For judging only. None stands for a part that cannot be read; treat it as dangerous. The lines of
    here-documents count as commands, and so do the parts of a comment: some shells run them.
    """
    script = parse_shell(text)
    names = [word.text for item in iter_items(script) for word in iter_words((item,))]
    feeds_shell = any(_SHELL_NAME.search(name) for name in names)
    yield from _listed(text, script, feeds_shell, depth=0)


def _listed(
    text: str, script: Script, feeds_shell: bool, depth: int
) -> Iterator[ScriptCommand | None]:
    guess = depth > 0 and not feeds_shell
    for item in iter_items(script):
        writes = tuple(each.target.text for each in item.redirections if each.writes_file)
        if isinstance(item, SimpleCommand):
            assigned = tuple(each.name for each in item.assignments)
            argv = _without_keywords([text for word in item.words for text in _expanded(word)])
            if argv or assigned or writes:
                yield ScriptCommand(argv, assigned, writes, guess=guess)
        else:
            if writes:
                yield ScriptCommand((), writes=writes, guess=guess)
            if item.kind == "((":  # arithmetic, but a shell also takes it for two subshells
                yield from _pieces(" ".join(word.text for word in item.words))
        for redirection in item.redirections:
            body = redirection.body or (
                redirection.target if redirection.operator == "<<<" else None
            )
            if body is not None and body.text.strip():
                if depth >= _DEEPEST:
                    yield None
                    continue
                yield from _listed(body.text, parse_shell(body.text), feeds_shell, depth + 1)
    for comment in script.comments:
        yield from _pieces(comment.text)
    if script.errors:
        if not guess:
            yield None
        yield from _pieces(text)


def _pieces(text: str) -> Iterator[ScriptCommand]:
    """Every run of words between operators, with quotes dropped and with quotes as blanks."""
    joined = _BRACES.sub(lambda match: match[1].replace(",", " "), text.replace("\\\n", ""))
    for quote in ("", " "):
        for piece in _PIECES.split(_QUOTES.sub(quote, joined)):
            argv = _without_keywords(piece.split())
            if argv:
                yield ScriptCommand(argv, guess=True)


def _expanded(word: Word) -> list[str]:
    """The text of ``word``, or the texts that its braces stand for."""
    texts = [word.text]
    if not any(mark.kind == "braces" for mark in word.marks):
        return texts
    while len(texts) < _MOST_WORDS and (braces := _BRACES.search(texts[0])):
        first = texts.pop(0)
        before, after = first[: braces.start()], first[braces.end() :]
        texts += [f"{before}{each}{after}" for each in braces[1].split(",")]
    return [text for text in texts if text]


def _without_keywords(words: list[str]) -> tuple[str, ...]:
    start = 0
    while start < len(words) and (words[start] in _KEYWORDS or _ASSIGNMENT.match(words[start])):
        start += 1
    program = [words[start].lstrip("!")] if words[start:] else []
    return (*program, *words[start + 1 :])
