"""The fenced blocks of a page: what their fences say, and the commands of a ``console`` block.

A line of a ``console`` block that begins with ``$`` is a command; a backslash at its end continues it. The
lines below are what it prints. There ``…`` stands for any text, and for any lines on a line of its own; an id
or a digest stands for one that chance makes, the same on the whole page. Its fence may say::

    exit=3              the last command ends so
    until="Proposals"   the command stays until these words are on its terminal; then it is ended
    stays="http"        the command runs until the end of the page; the next block begins after these words
    answers="y"         what is typed when it asks
    no-run="needs npm"  it cannot be run here, for this reason

The fence of any block may name the ``file`` that the reader writes with it.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from msgspec import Struct

_FENCE = re.compile(r"^( *)```(\S*) ?(.*)\n((?:.*\n)*?)\1``` *$", re.MULTILINE)
_FAR = "…"
_ID = re.compile(r"\b(?:[a-z]{1,4}-(?=[a-z0-9]*\d)[a-z0-9]{6,}|(?=[0-9a-f]*[a-f])[0-9a-f]{7,40})\b")
"""An id or a digest, which chance makes."""


class Block(Struct, frozen=True):
    """A fenced block: its language, what else its fence says, its text, and the line of its fence."""

    language: str
    says: dict[str, str]
    text: str
    line: int


class Step(Struct, frozen=True):
    """A command, and the lines that the page shows of what it prints."""

    command: str
    shown: tuple[str, ...]


def read_blocks(page: Path) -> list[Block]:
    """Return the blocks of a page in their order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            found[2],
            dict(word.partition("=")[::2] for word in shlex.split(found[3])),
            re.sub(rf"^{found[1]}", "", found[4], flags=re.MULTILINE),
            text.count("\n", 0, found.start()) + 1,
        )
        for found in _FENCE.finditer(text)
    ]


def read_steps(block: Block) -> list[Step]:
    """Return the commands of a block, each with the lines below it."""
    parts = re.split(r"^\$ ", block.text.replace("\\\n", ""), flags=re.MULTILINE)
    assert not parts[0].strip(), f"no command before {parts[0]!r}"
    return [Step(part.split("\n")[0], tuple(part.rstrip().split("\n")[1:])) for part in parts[1:]]


class Names:
    """The ids and digests of a page, and those that stand for them in a run."""

    def __init__(self) -> None:
        self._met: dict[str, str] = {}

    def fill_in(self, command: str) -> str:
        """Return a command with the ids of the run in place of those of the page."""
        return _ID.sub(lambda found: self._met.get(found[0], found[0]), command)

    def find_shown(self, step: Step, printed: str) -> bool:
        """Return whether a command printed what the page shows; learn the ids that it shows first."""
        named: list[str] = []
        pattern = "".join(self._to_pattern(line, named) for line in step.shown)
        found = re.search(f"^{pattern}", printed.rstrip() + "\n", re.MULTILINE)
        if found:
            self._met |= zip(named, found.groups(), strict=True)
        return found is not None

    def _to_pattern(self, line: str, named: list[str]) -> str:
        if line.strip() == _FAR:
            return r"(?:.*\n)*?"
        pattern, end = "", 0
        for found in _ID.finditer(line):
            pattern += _escape(line[end : found.start()])
            if found[0] in self._met:
                pattern += re.escape(self._met[found[0]])
            elif found[0] in named:
                pattern += rf"\{named.index(found[0]) + 1}"
            else:
                named.append(found[0])
                lead, _, rest = found[0].rpartition("-")
                pattern += rf"({lead}-[\w-]+)" if rest and lead else "([0-9a-f]+)"
            end = found.end()
        return pattern + _escape(line[end:].rstrip()) + r"[ \t]*\n"


def _escape(text: str) -> str:
    """Match a text, with any text for ``…``, and with any number of blanks between columns."""
    escaped = re.escape(text).replace(_FAR, ".*")
    return re.sub(r"(?:\\ ){2,}", r"\\s+", escaped)
