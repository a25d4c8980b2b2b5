"""Match the arguments of a program against the options that are known to only read.

A row of the table is one line of text: options that may be used, then ``:`` and what the operands are.
``-n=N`` takes a number, ``=T`` a text, ``=F`` a file that is read; ``--color=?T`` has an optional value
behind ``=``; ``-123`` stands for ``-NUMBER``. Everything that the row does not list is not a read, an
abbreviation of a long option too. See ``docs/reference/security.md``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from msgspec import Struct, field

_NUMBER = re.compile(r"[+-]?[0-9]+(?:[.,][0-9]+)?[a-zA-Z%]{0,3}")
_PLAIN_NUMBER = re.compile(r"-[0-9]+")


class Row(Struct, frozen=True):
    """The options of one program: by name what value each takes ('' none), and the kind of its operands."""

    options: dict[str, str]
    optional: frozenset[str]
    operands: str
    least: int = 0
    most: int = 1_000


class Arguments(Struct):
    """The arguments of one program, matched.

    ``files`` are read, ``names`` only looked up, ``folders`` read with everything below them. ``trouble``
    says why this is not a read ('' when it is one).
    """

    options: list[tuple[str, str]] = field(default_factory=list)
    operands: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    trouble: str = ""

    def has(self, *names: str) -> bool:
        """Whether one of the options was given."""
        return any(name in names for name, _ in self.options)


@cache
def parse_row(line: str) -> Row:
    """Parse a row of the table."""
    left, _, right = line.partition(" : ")
    kind, *bounds = right.split()
    options: dict[str, str] = {}
    optional: set[str] = set()
    for word in left.split():
        name, sign, value = word.partition("=")
        if sign and value.startswith("?"):
            optional.add(name)
            value = value[1:]
        if name.startswith("--") or sign or len(name) <= 2 or name == "-123":
            options[name] = value
        else:
            options |= {f"-{letter}": "" for letter in name[1:]}
    least, most = (int(bounds[0]), int(bounds[1])) if bounds else (0, 1_000)
    return Row(options, frozenset(optional), kind, least, most)


def match_arguments(words: Sequence[str], row: Row) -> Arguments:
    """Match ``words`` (without the program) against ``row``."""
    result = Arguments()
    queue = list(words)
    while queue and not result.trouble:
        word = queue.pop(0)
        if word == "--":
            result.operands += queue
            break
        if not word.startswith("-") or word == "-":
            result.operands.append(word)
        elif "-123" in row.options and _PLAIN_NUMBER.fullmatch(word):
            result.options.append(("-123", word[1:]))
        elif word.startswith("--") or word in row.options:
            _match_long(word, queue, row, result)
        else:
            _match_cluster(word, queue, row, result)
    if not result.trouble and not row.least <= len(result.operands) <= row.most:
        result.trouble = f"with {len(result.operands)} operands it does something else"
    return result


def _match_long(word: str, queue: list[str], row: Row, result: Arguments) -> None:
    name, sign, value = word.partition("=")
    if name not in row.options:
        result.trouble = f"its option {name} is not known to only read"
        return
    kind = row.options[name]
    if not kind:
        if sign:
            result.trouble = f"its option {name} takes no value"
        result.options.append((name, ""))
    elif name in row.optional:
        _add(name, value, kind if sign else "T", result)
    elif sign:
        _add(name, value, kind, result)
    elif queue:
        _add(name, queue.pop(0), kind, result)
    else:
        result.trouble = f"its option {name} has no value"


def _match_cluster(word: str, queue: list[str], row: Row, result: Arguments) -> None:
    for place, letter in enumerate(word[1:], start=1):
        name = f"-{letter}"
        if name not in row.options:
            result.trouble = f"its option {name} is not known to only read"
            return
        kind = row.options[name]
        if not kind:
            result.options.append((name, ""))
            continue
        rest = word[place + 1 :]
        if name in row.optional:
            _add(name, rest, kind if rest else "T", result)
        elif rest:
            _add(name, rest, kind, result)
        elif queue:
            _add(name, queue.pop(0), kind, result)
        else:
            result.trouble = f"its option {name} has no value"
        return


def _add(name: str, value: str, kind: str, result: Arguments) -> None:
    if kind == "N" and not _NUMBER.fullmatch(value):
        result.trouble = f"the value of {name} is not a number"
    if kind == "F":
        result.files.append(value)
    result.options.append((name, value))
