"""Missed signals: the agent had to ask for a fact that its packet had left out.

Granted requests of a wave are compared with the facts that its session had at the time and its packet
dropped or shortened. See ``docs/reference/kernel.md``.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from fnmatch import fnmatchcase

from msgspec import Struct

from cockpit.store.context import packets
from cockpit.store.context.facts import LEVELS
from cockpit.store.context.wave_feedback import MissedFact
from cockpit.store.sessions.waves import Wave

_LEVEL = re.compile(r" @(full|outline|reference)$")
_LINES = re.compile(r":([0-9]{1,9})-([0-9]{1,9})$")
_GLOB = re.compile(r" in (\S+|\".*\")$")
_GLOBBED = ("search", "diff", "pr")
_DROPPED = len(LEVELS)


class _Place(Struct, frozen=True):
    """A parsed scope item: ``detail`` is 0 full, 1 outline, 2 reference."""

    kind: str
    ref: str
    lines: tuple[int, int] | None
    glob: str
    detail: int

    def overlaps(self, other: _Place) -> bool:
        """Whether this item asks for a part of ``other``."""
        if self.kind != other.kind or not _matches(self.kind, self.ref, other.ref):
            return False
        if self.lines and other.lines:
            return self.lines[0] <= other.lines[1] and other.lines[0] <= self.lines[1]
        return not (self.glob and other.glob) or _matches("file", self.glob, other.glob)


def find_missed(connection: sqlite3.Connection, wave: Wave) -> tuple[MissedFact, ...]:
    """List the signals that a wave missed, in the order in which it asked for them.

    Requests that were not granted, and facts that a task type fetches by itself, do not count.
    """
    items = _granted(connection, wave)
    if not items:
        return ()
    places = [(item, _place(item)) for item in items]
    facts = _live_facts(connection, wave, [place.kind for _, place in places])
    matches = [
        (item, place, fact, source)
        for item, place in places
        for fact, source in facts
        if place.overlaps(source)
    ]
    if not matches:
        return ()
    levels = _levels(connection, wave.wave_id)
    signals: dict[str, MissedFact] = {}
    for item, place, (fact_id, source_type, source_ref, band, tokens), source in matches:
        shown = levels.get(fact_id, _DROPPED)
        # A fact that was granted as an outline is whole as one.
        shown = shown if shown == _DROPPED else max(shown, source.detail)
        if shown > place.detail >= source.detail:
            word = "dropped" if shown == _DROPPED else LEVELS[shown]
            signals.setdefault(
                fact_id, MissedFact(item, fact_id, source_type, source_ref, band, word, tokens)
            )
    return tuple(signals.values())


def _granted(connection: sqlite3.Connection, wave: Wave) -> list[str]:
    rows = connection.execute(
        "SELECT json_each.value FROM context_requests, json_each(approved_json)"
        " WHERE session_id=? AND wave_id=? AND call_id<>'' AND status IN ('approved','fetched')"
        " ORDER BY context_requests.rowid, json_each.key",
        (wave.session_id, wave.wave_id),
    )
    return list(dict.fromkeys(str(item) for (item,) in rows))


def _live_facts(
    connection: sqlite3.Connection, wave: Wave, kinds: Sequence[str]
) -> list[tuple[tuple[str, str, str, str, int], _Place]]:
    """Return the facts of these kinds that were live when the wave was compiled."""
    named = sorted(set(kinds))
    rows = connection.execute(
        "SELECT fact_id, source_type, source_ref, band, tokens_full FROM session_facts"  # noqa: S608 - only question marks
        f" WHERE session_id=? AND ordinal<=? AND source_type IN ({','.join('?' * len(named))})"
        " AND (superseded_at IS NULL OR superseded_at>?) ORDER BY ordinal, position",
        (wave.session_id, wave.ordinal, *named, wave.ordinal),
    )
    return [(row, _place(row[2])) for row in rows]


def _levels(connection: sqlite3.Connection, wave_id: str) -> dict[str, int]:
    """Return the level of every fact in the wave's packet."""
    stored = packets.find(connection, wave_id)
    if stored is None:
        return {}
    in_force = stored.packet.in_force()
    return {fact_id: packets.detail_of(entry) for fact_id, (_, entry) in in_force.items()}


def _place(item: str) -> _Place:
    kind, _, rest = item.partition(":")
    detail = 0
    if level := _LEVEL.search(rest):
        rest, detail = rest[: level.start()], LEVELS.index(level[1])
    lines, glob = None, ""
    if kind == "file" and (lines_match := _LINES.search(rest)):
        rest, lines = rest[: lines_match.start()], (int(lines_match[1]), int(lines_match[2]))
    elif kind in _GLOBBED and (inside := _GLOB.search(rest)):
        rest, glob = rest[: inside.start()], inside[1]
    return _Place(kind, rest, lines, glob, detail)


def _matches(kind: str, item: str, source: str) -> bool:
    if item == source:
        return True
    return kind == "file" and (
        source.startswith(item.rstrip("/") + "/") or fnmatchcase(source, item)
    )
