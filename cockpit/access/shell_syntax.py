"""The syntax of shell text as a typed record: commands, words, redirections, groups, errors.

:mod:`cockpit.access.parse_shell` makes it; command risk, permission answers, ``gh`` and the capture of
work read it. See ``docs/reference/actions.md`` and ``docs/reference/hooks.md``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias

from msgspec import Struct

MarkKind = Literal[
    "variable",
    "command",
    "process",
    "arithmetic",
    "ansi",
    "translated",
    "glob",
    "brackets",
    "tilde",
    "braces",
    "continuation",
    "separator",
    "comment",
    "error",
]


class Mark(Struct, frozen=True):
    """A piece of shell syntax: its kind, its text and its offset in characters."""

    kind: MarkKind
    text: str
    start: int


class Word(Struct, frozen=True):
    """One word of a command.

    Quotes and escapes are resolved in ``text``; an expansion stays as it is written. ``marks`` are the
    expansions and globs: without any, the value is known before the command runs. ``nested`` are the
    scripts of ``$()``, backticks, ``<()`` and ``>()`` in the word.
    """

    text: str
    start: int
    marks: tuple[Mark, ...] = ()
    nested: tuple[Script, ...] = ()


class Assignment(Struct, frozen=True):
    """``NAME=VALUE`` before a command, by itself, or as an argument of ``export`` and its like."""

    name: str
    value: Word


class Redirection(Struct, frozen=True):
    """One redirection: ``operator`` without its file descriptor, and the word after it.

    The target of a here-document is its delimiter; ``body`` is its text without the last newline. A
    here-string has its word as ``target``.
    """

    operator: str
    target: Word
    body: Word | None = None

    @property
    def writes_file(self) -> bool:
        """Whether it opens its target for writing (``2>&1`` and ``>&-`` do not)."""
        duplicates = self.operator == ">&" and re.fullmatch(r"[0-9]*-?", self.target.text)
        return ">" in self.operator and not duplicates


class SimpleCommand(Struct, frozen=True):
    """A program with its arguments; without words it only assigns or redirects.

    ``operator`` is what stands before it in its list: ``;`` (a newline too), ``&``, ``&&``, ``||``,
    ``|``, ``|&``, or empty for the first.
    """

    words: tuple[Word, ...]
    assignments: tuple[Assignment, ...] = ()
    redirections: tuple[Redirection, ...] = ()
    operator: str = ""


class Group(Struct, frozen=True):
    """A compound command: ``kind`` is its first keyword (``if``, ``for``, ``{``, ``(``, ``function``…).

    ``words`` are the words of its head, ``items`` its conditions and bodies in order.
    """

    kind: str
    words: tuple[Word, ...]
    items: tuple[Item, ...]
    redirections: tuple[Redirection, ...] = ()
    operator: str = ""


Item: TypeAlias = SimpleCommand | Group


class Script(Struct, frozen=True):
    """A text as commands.

    The outermost script also lists, over the whole text, ``separators`` (operators, newlines, line
    continuations), ``comments``, and ``errors``: parts that the grammar could not read.
    """

    items: tuple[Item, ...] = ()
    separators: tuple[Mark, ...] = ()
    comments: tuple[Mark, ...] = ()
    errors: tuple[Mark, ...] = ()


def iter_items(script: Script) -> Iterator[Item]:
    """Yield every command and group in ``script``, those inside groups and substitutions too."""
    for item in script.items:
        yield item
        if isinstance(item, Group):
            yield from iter_items(Script(item.items))
        for word in iter_words((item,)):
            for nested in word.nested:
                yield from iter_items(nested)


def iter_words(items: Iterable[Item]) -> Iterator[Word]:
    """Yield the words of ``items`` themselves: arguments, assigned values, targets and here-documents."""
    for item in items:
        yield from item.words
        if isinstance(item, SimpleCommand):
            yield from (assignment.value for assignment in item.assignments)
        for redirection in item.redirections:
            yield redirection.target
            if redirection.body is not None:
                yield redirection.body
