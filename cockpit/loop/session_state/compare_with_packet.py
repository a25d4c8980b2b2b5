"""What a context request asks for, compared with the current packet and with what was read before.

An item is *shown* where the packet has all of its answer, in full and in the version of now. It is *stored*
where the session has read it, the packet dropped it, and nothing changed since: its facts are served again.
See ``docs/reference/guards.md``, redundant reads.
"""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field

from cockpit.act.guards.action_guard import GuardState, PacketLines
from cockpit.act.guards.line_coverage import covers_lines
from cockpit.act.text_edits import digest_read
from cockpit.core.text import pluralize
from cockpit.loop.wave_context import WaveContext
from cockpit.observe.context_request import ContextRequest
from cockpit.observe.freshness.content_marks import mark_items
from cockpit.observe.gateway import ContextGateway
from cockpit.observe.path_globs import matches_glob
from cockpit.observe.scope_items import REMOTE, ScopeItem, ScopeRefused, parse_item
from cockpit.store.context import facts, observation_jobs, packets
from cockpit.store.context.facts import Fact
from cockpit.store.context.packets import Entry, detail_of
from cockpit.store.context.stored_facts import load_facts

MOST_MARKED = 1_000
"""Items that are looked at together; more are read again, which takes about as long."""
_LISTS = frozenset({"search", "tree"})
"""Sources that answer with lines which each say where they are from."""
_HIT = re.compile(r"(?P<path>.+?):(?P<line>\d{1,9}): ")
_MORE = "… "
_LISTED_LINES = 12


class PacketComparison(Struct, frozen=True):
    """Items of a request by their text as it was written; an item is in one of the two or in none.

    ``shown`` has their places in the packet, as text for the model.
    """

    shown: Mapping[str, str] = field(default_factory=dict)
    stored: Mapping[str, tuple[Fact, ...]] = field(default_factory=dict)


class _InPacket(Struct, frozen=True):
    """The facts that the packet shows in full, and the items that the session has read before."""

    entries: Mapping[str, tuple[str, Entry]]
    refs: Mapping[str, str]
    """Facts of files, searches, trees and diffs: their scope items by fact id."""
    read_before: frozenset[str]

    def where(self, fact_ids: Iterable[str]) -> str:
        """Return the places of facts in the packet, as text."""
        names = [f"{self.entries[fact_id][0]}, {fact_id}" for fact_id in dict.fromkeys(fact_ids)]
        more = f" and {len(names) - 4:,} more" if len(names) > 4 else ""
        return ", ".join(names[:4]) + more

    def has_like(self, item: ScopeItem) -> bool:
        """Return whether the packet has an answer of the same source that could contain this one's."""
        begin = "tree:" if item.kind == "tree" else f"{item.kind}:{item.ref}"
        return any(ref.startswith(begin) for ref in self.refs.values())


async def compare_with_packet(
    context: WaveContext, gateway: ContextGateway, items: Sequence[str], state: GuardState
) -> PacketComparison:
    """Compare the items of a request with the packet of the wave.

    An item that has no mark of its content is read and compared, if the session has read it before; nothing
    of that is stored.
    """
    parsed = {item: scope for item in items if (scope := _parse(item)) is not None}
    parsed = {item: scope for item, scope in parsed.items() if scope.kind not in REMOTE}
    if not parsed:
        return PacketComparison()
    in_packet = await context.store.read(
        lambda connection: _read_packet(connection, context, list(parsed.values()))
    )
    kept = await _find_kept(context, gateway, parsed)
    shown: dict[str, str] = {}
    stored: dict[str, tuple[Fact, ...]] = {}
    for item, scope in parsed.items():
        answer = kept.get(item) or await _read_again(gateway, in_packet, scope, state)
        if not answer:
            continue
        if all(fact.fact_id in in_packet.entries for fact in answer):
            shown[item] = in_packet.where(fact.fact_id for fact in answer)
        elif contained := await _find_contained(context, gateway, in_packet, scope, answer, state):
            shown[item] = contained
        elif item in kept:
            stored[item] = kept[item]
    return PacketComparison(shown, stored)


async def find_stored_answers(
    context: WaveContext, gateway: ContextGateway, items: Sequence[str]
) -> tuple[list[str], dict[int, tuple[Fact, ...]]]:
    """Return the mark of each item, and by index the facts of those that have not changed since.

    No file is opened and no program started.
    """
    if len(items) > MOST_MARKED:
        return [""] * len(items), {}
    scopes = [parse_item(item) for item in items]
    marks = await asyncio.to_thread(mark_items, gateway.ground, scopes)
    session_id, kept = context.session.session_id, context.engine.answers
    ids = {
        at: fact_ids
        for at, scope in enumerate(scopes)
        if (fact_ids := kept.find(session_id, str(scope), marks[at]))
    }
    if not ids:
        return marks, {}

    def load(connection: sqlite3.Connection) -> dict[int, tuple[Fact, ...]]:
        answers = {at: load_facts(connection, session_id, each) for at, each in ids.items()}
        return {at: answer for at, answer in answers.items() if answer}

    return marks, await context.store.read(load)


def _parse(item: str) -> ScopeItem | None:
    try:
        return parse_item(item)
    except ScopeRefused:
        return None


async def _find_kept(
    context: WaveContext, gateway: ContextGateway, parsed: Mapping[str, ScopeItem]
) -> dict[str, tuple[Fact, ...]]:
    session_id, answers = context.session.session_id, context.engine.answers
    items = [item for item, scope in parsed.items() if answers.has(session_id, str(scope))]
    if not items:
        return {}
    _, stored = await find_stored_answers(context, gateway, items)
    return {items[at]: answer for at, answer in stored.items()}


def _read_packet(
    connection: sqlite3.Connection, context: WaveContext, scopes: Sequence[ScopeItem]
) -> _InPacket:
    packet = packets.load(connection, context.wave.wave_id).packet
    entries = {
        fact_id: shown for fact_id, shown in packet.in_force().items() if detail_of(shown[1]) == 0
    }
    kinds = {scope.kind for scope in scopes}
    refs = facts.load_refs(connection, list(entries), kinds)
    read_before = observation_jobs.select_read_before(
        connection, context.session.session_id, [str(scope) for scope in scopes]
    )
    return _InPacket(entries, refs, read_before)


async def _read_again(
    gateway: ContextGateway, in_packet: _InPacket, scope: ScopeItem, state: GuardState
) -> tuple[Fact, ...]:
    """Read an item that may be in the packet, to compare it; empty where it cannot be, or cannot be read."""
    if scope.kind == "file" and scope.level == "full" and str(scope) not in in_packet.read_before:
        return ()  # its lines are compared by the guard
    may_be_shown = (
        str(scope) in in_packet.read_before
        or (scope.kind in {*_LISTS, "diff"} and in_packet.has_like(scope))
        or (scope.kind == "search" and _may_be_in_files(scope.glob, state))
    )
    if not may_be_shown or not in_packet.entries:
        return ()
    parts = (await gateway.expand([scope]))[0]
    if len(parts) > len(in_packet.entries):
        return ()  # more than the packet has
    fetched = await gateway.fetch(ContextRequest("compare", "compare", tuple(parts)))
    if any(outcome.error for outcome in fetched.outcomes):
        return ()
    return fetched.facts


async def _find_contained(
    context: WaveContext,
    gateway: ContextGateway,
    in_packet: _InPacket,
    scope: ScopeItem,
    answer: Sequence[Fact],
    state: GuardState,
) -> str | None:
    """Return where a search's or a tree's lines are in the packet; None where it says anything else.

    They are in a wider answer of the same source, which has no other lines for the item: one that is gone is
    news. Or (of a search) they are in files that are shown.
    """
    if scope.kind not in _LISTS or scope.level != "full" or len(answer) != 1:
        return None
    lines = answer[0].full.text.splitlines()
    if not lines or lines[-1].startswith(_MORE):
        return None  # it was cut: another cut of it may have other lines
    alike = [ref_id for ref_id, ref in in_packet.refs.items() if _is_of(ref, scope)]
    texts = await context.store.read(lambda connection: facts.load_texts(connection, alike))
    for text in texts.values():
        if text.provenance.get("level") == "full" and lines == _lines_within(text.full, scope):
            return in_packet.where([text.fact_id])
    if scope.kind != "search":
        return None
    hits = [match for line in lines if (match := _HIT.match(line))]
    if len(hits) != len(lines):
        return None
    by_path: dict[str, set[int]] = defaultdict(set)
    for hit in hits:
        by_path[hit["path"]].add(int(hit["line"]))
    shown = await asyncio.to_thread(_are_lines_shown, gateway, by_path, state)
    return _describe_hits(by_path, len(lines)) if shown else None


def _lines_within(wider: str, scope: ScopeItem) -> list[str] | None:
    """Return the lines of a wider answer that ``scope`` would give; None where the wider one was cut."""
    lines = wider.splitlines()
    if lines and lines[-1].startswith(_MORE):
        return None
    if scope.kind == "tree":
        return [line for line in lines if scope.ref == "." or line.startswith(f"{scope.ref}/")]
    hits = ((line, _HIT.match(line)) for line in lines)
    return [line for line, hit in hits if hit and matches_glob(hit["path"], scope.glob)]


def _may_be_in_files(glob: str | None, state: GuardState) -> bool:
    """Return whether the packet has lines of a file that the glob of a search may match."""
    if glob is None:
        return False
    fixed = re.split(r"[*?\[]", glob, maxsplit=1)[0].rpartition("/")[0]
    return any(
        path == glob or (fixed and path.startswith(f"{fixed}/")) for path in state.packet_files
    )


def _is_of(ref: str, scope: ScopeItem) -> bool:
    other = _parse(ref)
    return (
        other is not None
        and other.kind == scope.kind
        and (scope.kind == "tree" or other.ref == scope.ref)
    )


def _are_lines_shown(
    gateway: ContextGateway, by_path: Mapping[str, set[int]], state: GuardState
) -> bool:
    for path, numbers in by_path.items():
        parts = state.packet_files.get(path, ())
        if not parts:
            return False
        now = "" if state.pinned_rev else digest_read(gateway.ground.confined, path)
        if not _has_lines(parts, numbers, now):
            return False
    return True


def _has_lines(parts: Sequence[PacketLines], numbers: Iterable[int], now: str | None) -> bool:
    """Return whether the parts of one version have all lines; ``now`` '' takes any version."""
    versions = {
        part.content_sha for part in parts if part.content_sha and now in ("", part.content_sha)
    }
    for version in versions:
        ranges = [(part.start, part.end) for part in parts if part.content_sha == version]
        if all(covers_lines(ranges, number, number) for number in numbers):
            return True
    return False


def _describe_hits(by_path: Mapping[str, set[int]], count: int) -> str:
    places: list[str] = []
    left = _LISTED_LINES
    for path, numbers in by_path.items():
        if left <= 0:
            break
        named = sorted(numbers)[:left]
        left -= len(named)
        places.append(f"{path}:{','.join(map(str, named))}")
    more = ", …" if count > _LISTED_LINES else ""
    lines = pluralize(count, "matching line")
    return f"{lines} in files that are in your context: {'; '.join(places)}{more}"
