"""Text that only a result had shown and that a later command quotes: need, measured without names of files.

A line counts from 16 characters, an identifier from six if it is compound (``snake_case``, ``camelCase``).
Paths are cut out. What the task says, and what the agent wrote before, it does not need a result for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from cockpit.store.context.facts import FactText
from cockpit.store.context.packets import DIFF, Packet

_PLACE = re.compile(r"^\s*(?:[\w./-]+\.\w+[:-])?\d+[:\t-]|^[+-]")
"""What ``grep -n`` and diffs write before a line."""
_PATH = re.compile(r"[\w.+-]*/[\w./+-]*|[\w+-]+\.(?:py|txt|cfg|toml|rst|md|sh|json|sql|patch)\b")
_NAME = re.compile(r"[A-Za-z_]\w{5,}")
_COMPOUND = re.compile(r"[^_]_[^_]|[a-z][A-Z]")
_LEAST_CHARS = 16


@dataclass(frozen=True, slots=True)
class Quoted:
    """Lines and identifiers of a text."""

    lines: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()

    def __and__(self, other: Quoted) -> Quoted:
        return Quoted(self.lines & other.lines, self.names & other.names)

    def __or__(self, other: Quoted) -> Quoted:
        return Quoted(self.lines | other.lines, self.names | other.names)

    def __sub__(self, other: Quoted) -> Quoted:
        return Quoted(self.lines - other.lines, self.names - other.names)


NOTHING = Quoted()


def quote(text: str) -> Quoted:
    """Return the lines and identifiers of a text that a command may quote."""
    stripped = (_PLACE.sub("", line).strip() for line in text.splitlines())
    lines = (line for line in stripped if len(line) >= _LEAST_CHARS and not _PATH.fullmatch(line))
    names = _NAME.findall(_PATH.sub(" ", text))
    return Quoted(
        frozenset(line for line in lines if re.search("[A-Za-z]{3}", line)),
        frozenset(name for name in names if _COMPOUND.search(name)),
    )


def find_quotes(task: str, actions: Sequence[dict[str, object]]) -> list[Quoted]:
    """Return, for each action of a run, what its command quotes that only results before it showed."""
    own, shown, quotes = quote(task), NOTHING, []
    for action in actions:
        command = quote(str(action["command"]))
        quotes.append((command & shown) - own)
        own |= quote(str(action["says"])) | command
        shown |= quote(str(action["output"])) - own
    return quotes


@dataclass(slots=True)
class ShownText:
    """What packets of one session show, at the levels of their entries."""

    by_entry: dict[tuple[str, str], Quoted] = field(default_factory=dict)

    def in_packet(self, packet: Packet, texts: dict[str, FactText]) -> Quoted:
        """Return the lines and identifiers in a packet; a difference says, with its base, the whole text."""
        lines, names = set[str](), set[str]()
        for _, entry in packet.rendered():
            level = "full" if entry.level == DIFF else entry.level
            key = entry.fact_id, level
            if key not in self.by_entry:
                self.by_entry[key] = quote(_text_of(texts[entry.fact_id], level))
            shown = self.by_entry[key]
            lines |= shown.lines
            names |= shown.names
        return Quoted(frozenset(lines), frozenset(names))


def _text_of(fact: FactText, level: str) -> str:
    if level == "outline":
        return (fact.outline or "").replace("\\n", "\n")
    if level != "full":
        return ""
    if fact.source_type != "exchange":
        return fact.full
    arguments = fact.provenance.get("arguments", {})
    parts = (
        fact.provenance.get("text", ""),
        *arguments.values(),
        fact.provenance.get("result", ""),
    )
    return "\n".join(map(str, parts))
