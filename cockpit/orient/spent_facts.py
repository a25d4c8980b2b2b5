"""What a session has read and done, and no longer needs whole when a packet is compiled afresh.

What the agent *read* is quoted and edited later far more often than what it *ran*, so both are judged apart.
Of what ran, the last word on each file stays in outline, or whole where it is short; the rest is a reference.
Of what was read, the last word on each file stays whole, and so do the parts that the agent works with, up to
a number of tokens. Whatever else a packet holds costs its read price in every wave that follows.
See ``docs/reference/kernel.md``, epochs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from cockpit.core.named_files import FileNames
from cockpit.orient.fact_columns import NEVER, FactColumns, Flags, Ints
from cockpit.orient.greedy_fill import DROPPED, OUTLINE
from cockpit.orient.select_facts import Selection
from cockpit.store.context.packet_epoch import SpentFacts
from cockpit.store.context.packets import REASONS

_CALL = "exchange"
SPENDABLE = (_CALL, "file", "symbol", "search", "tree", "log")
"""Sources whose facts can be spent: what the agent asked for and did, and can ask for again."""
WHOLE_WAVES = 2
"""Waves, the current one included, of which every fact stays whole."""
SMALL_TOKENS = 50
"""A fact that takes no more stays: a reference to it takes nearly as much."""
WORKING_TOKENS = 2_500
"""Tokens of what was read before the last word on its file, and stays: files called last come first."""
LISTED_FILES = 8
"""A short result that names so many files that no later one names is a listing, and stays."""
MAX_NAMED = 2_000
"""Facts, the newest, whose files are looked at; older ones are spent."""
NO_SPENT = SpentFacts()
_REFERENCE = 2
_DUPLICATE = REASONS.index("duplicate")
_NOTHING = FileNames(frozenset(), frozenset(), frozenset())


NameFiles = Callable[[Sequence[str]], Mapping[str, FileNames]]
"""Reads the files that facts name, by fact id."""


class SpentFlags(Struct, frozen=True):
    """Which facts of columns are spent, which of these come as references, and which are left out."""

    spent: Flags
    brief: Flags
    left_out: Flags


class SpendableFacts(NamedTuple):
    """Facts that can be spent, in order of time; lists have one item a fact, but for ``ids``."""

    ids: Sequence[str]
    """Of all facts."""
    places: Sequence[int]
    """Where they are among these."""
    seen: Sequence[int]
    """The wave that first saw each."""
    full: Sequence[int]
    types: Sequence[str]
    has_outline: Sequence[bool]
    pinned: Sequence[bool]


class ListsSpendable(Protocol):
    """Facts in another form than columns."""

    def list_spendable(self) -> SpendableFacts:
        """List the facts that can be spent."""


def is_spendable(source_type: str) -> bool:
    """Whether facts of a source can be spent."""
    return source_type in SPENDABLE


def _list_spendable(columns: FactColumns) -> SpendableFacts:
    spendable = np.array([name in SPENDABLE for name in columns.types], np.bool_)
    open_to = ~columns.superseded & ~columns.repeated
    if len(columns):
        open_to &= spendable[columns.source_type]
    at = np.flatnonzero(open_to & (columns.ordinal > 1))
    return SpendableFacts(
        columns.fact_ids,
        at.tolist(),
        columns.ordinal[at].tolist(),
        columns.full[at].tolist(),
        [columns.types[code] for code in columns.source_type[at].tolist()],
        (columns.outline[at] < NEVER).tolist(),
        columns.pinned[at].tolist(),
    )


def find_spent(
    facts: FactColumns | ListsSpendable, ordinal: int, name_files: NameFiles
) -> SpentFacts:
    """Return the facts that are spent in wave ``ordinal``.

    What the session began with and what is superseded is not among them.
    """
    listed = _list_spendable(facts) if isinstance(facts, FactColumns) else facts.list_spendable()
    far, near = listed.places[:-MAX_NAMED], listed.places[-MAX_NAMED:]
    ordinals, full, types = (
        listed.seen[-MAX_NAMED:],
        listed.full[-MAX_NAMED:],
        listed.types[-MAX_NAMED:],
    )
    outlines, pinned = listed.has_outline[-MAX_NAMED:], listed.pinned[-MAX_NAMED:]
    if not near:
        return NO_SPENT
    fact_ids = [listed.ids[i] for i in near]
    by_id = name_files(fact_ids)
    names = [by_id.get(fact_id, _NOTHING) for fact_id in fact_ids]
    used = frozenset[str]().union(*{each.used for each in by_id.values()})
    last_called: dict[str, int] = {}
    for named, seen in zip(names, ordinals, strict=True):
        for name in named.called:
            last_called[name] = seen
    spent, brief, left_out = set(far), set(far), set[int]()
    read: list[tuple[int, int, int, int]] = []
    later: set[str] = set()
    for place in range(len(near) - 1, -1, -1):
        i, named = near[place], names[place]
        if ordinals[place] > ordinal - WHOLE_WAVES:
            pass
        elif types[place] != _CALL:
            if full[place] > SMALL_TOKENS and named.all & used <= later:
                when = max((last_called[name] for name in named.called), default=0)
                read.append((when, ordinals[place], i, full[place]))
        elif named.is_answered and not pinned[place]:
            spent.add(i)
            left_out.add(i)
        elif full[place] > SMALL_TOKENS:
            has_outline, is_last = outlines[place], not named.all & used <= later
            if has_outline and not is_last:
                brief.add(i)
            if has_outline or not (is_last or _lists_files(named, later)):
                spent.add(i)
        later |= named.all
    spent |= _beyond_working_set(read)

    def ids(places: set[int]) -> tuple[str, ...]:
        return tuple(listed.ids[i] for i in sorted(places))

    return SpentFacts(ids(spent), ids(brief), ids(left_out))


def _lists_files(named: FileNames, later: set[str]) -> bool:
    """Whether a result names many files of the project for the last time."""
    if len(named.all) < LISTED_FILES:
        return False
    return sum(not name.startswith("/") for name in named.all - later) >= LISTED_FILES


def _beyond_working_set(read: list[tuple[int, int, int, int]]) -> set[int]:
    """Return the places of ``read`` that do not stay.

    An item is (wave that called its file last, wave, place, tokens).
    """
    held, beyond = 0, set[int]()
    for _, _, i, tokens in sorted(read, reverse=True):
        held += tokens
        if held > WORKING_TOKENS:
            beyond.add(i)
    return beyond


def flag_spent(columns: FactColumns, spent: SpentFacts) -> SpentFlags:
    """Return which facts of ``columns`` are spent."""
    return SpentFlags(
        _flag(columns, spent.ids), _flag(columns, spent.brief), _flag(columns, spent.left_out)
    )


def _flag(columns: FactColumns, fact_ids: Sequence[str]) -> Flags:
    if not fact_ids:
        return np.zeros(len(columns), np.bool_)
    ids = frozenset(fact_ids)
    return np.array([identity in ids for identity in columns.fact_ids], np.bool_)


def condense(columns: FactColumns, flags: SpentFlags) -> tuple[FactColumns, Ints]:
    """Return the facts as they compete when spent ones have no level but their shortest useful one.

    That is the outline, or the reference of what has none or is brief, and is not pinned. What is pinned
    whole stays. What is left out does not compete. The array says, for each fact, the level that stands in
    the place of the full one: 0 where that stays.
    """
    if not (flags.spent.any() or flags.left_out.any()):
        return columns, np.zeros(len(columns), np.int64)
    has_outline = columns.outline < NEVER
    is_free = ~columns.pinned & (columns.reference < NEVER)
    to_reference = flags.spent & (~has_outline | flags.brief) & is_free
    to_outline = flags.spent & has_outline & (~columns.pinned | columns.short) & ~to_reference
    level = np.where(to_outline, OUTLINE, np.where(to_reference, _REFERENCE, 0))
    shortened = level > 0
    tokens = np.where(to_outline, columns.outline, columns.reference)
    offered = replace(
        columns,
        full=np.where(shortened, tokens, columns.full),
        outline=np.where(shortened, NEVER, columns.outline),
        reference=np.where(
            to_outline, columns.reference, np.where(to_reference, NEVER, columns.reference)
        ),
        short=columns.short & ~shortened,
        superseded=columns.superseded | (flags.left_out & ~columns.pinned),
    )
    return offered, level


def restore_levels(
    chosen: Selection, columns: FactColumns, level: Ints, flags: SpentFlags
) -> Selection:
    """Return a selection of condensed facts as one of ``columns``, with the levels that they have there.

    What was left out is a duplicate of what other facts hold.
    """
    left_out = flags.left_out & ~columns.superseded & (chosen.level == DROPPED)
    return replace(
        chosen,
        columns=columns,
        level=np.where(chosen.level == 0, level, chosen.level),
        dropped_for=np.where(left_out, _DUPLICATE, chosen.dropped_for),
    )
