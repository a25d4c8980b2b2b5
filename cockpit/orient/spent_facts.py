"""What a session has read and done, and no longer needs whole when a packet is compiled afresh.

What the agent *read* is quoted and edited later far more often than what it *ran*, so both are judged apart.
Of what ran, the last word on each file stays in outline, or whole where it is short; the rest is a reference.
Of what was read, the last word on each file stays whole, and so do the parts that the agent works with, up to
a number of tokens. Whatever else a packet holds costs its read price in every wave that follows.
See ``docs/reference/kernel.md``, epochs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

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


@dataclass(frozen=True, slots=True)
class SpentFlags:
    """Which facts of columns are spent, which of these come as references, and which are left out."""

    spent: Flags
    brief: Flags
    left_out: Flags


def find_spent(columns: FactColumns, ordinal: int, name_files: NameFiles) -> SpentFacts:
    """Return the facts that are spent in wave ``ordinal``.

    What the session began with and what is superseded is not among them.
    """
    spendable = np.array([name in SPENDABLE for name in columns.types], np.bool_)
    open_to = ~columns.superseded & ~columns.repeated
    if len(columns):
        open_to &= spendable[columns.source_type]
    places = np.flatnonzero(open_to & (columns.ordinal > 1)).tolist()
    near, far = places[-MAX_NAMED:], places[:-MAX_NAMED]
    if not near:
        return NO_SPENT
    fact_ids = [columns.fact_ids[i] for i in near]
    by_id = name_files(fact_ids)
    names = [by_id.get(fact_id, _NOTHING) for fact_id in fact_ids]
    used = frozenset[str]().union(*{each.used for each in by_id.values()})
    at = np.array(near, np.int64)
    ordinals, full = columns.ordinal[at].tolist(), columns.full[at].tolist()
    is_call = (columns.source_type[at] == _code_of(columns, _CALL)).tolist()
    outlines = (columns.outline[at] < NEVER).tolist()
    last_called: dict[str, int] = {}
    for named, seen in zip(names, ordinals, strict=True):
        for name in named.called:
            last_called[name] = seen
    spent, brief, left_out = set(far), set(far), set[int]()
    read: list[tuple[int, int, int]] = []
    later: set[str] = set()
    for place in range(len(near) - 1, -1, -1):
        i, named = near[place], names[place]
        if ordinals[place] > ordinal - WHOLE_WAVES:
            pass
        elif not is_call[place]:
            if full[place] > SMALL_TOKENS and named.all & used <= later:
                when = max((last_called[name] for name in named.called), default=0)
                read.append((when, ordinals[place], i))
        elif named.is_answered and not columns.pinned[i]:
            spent.add(i)
            left_out.add(i)
        elif full[place] > SMALL_TOKENS:
            has_outline, is_last = outlines[place], not named.all & used <= later
            if has_outline and not is_last:
                brief.add(i)
            if has_outline or not (is_last or _lists_files(named, later)):
                spent.add(i)
        later |= named.all
    spent |= _beyond_working_set(columns, read)

    def ids(places: set[int]) -> tuple[str, ...]:
        return tuple(columns.fact_ids[i] for i in sorted(places))

    return SpentFacts(ids(spent), ids(brief), ids(left_out))


def _code_of(columns: FactColumns, source_type: str) -> int:
    """Return the code of a source type, -1 where no fact has it."""
    return columns.types.index(source_type) if source_type in columns.types else -1


def _lists_files(named: FileNames, later: set[str]) -> bool:
    """Whether a result names many files of the project for the last time."""
    if len(named.all) < LISTED_FILES:
        return False
    return sum(not name.startswith("/") for name in named.all - later) >= LISTED_FILES


def _beyond_working_set(columns: FactColumns, read: list[tuple[int, int, int]]) -> set[int]:
    """Return the places of ``read``, as (wave that called its file last, wave, place), that do not stay."""
    held, beyond = 0, set[int]()
    for _, _, i in sorted(read, reverse=True):
        held += int(columns.full[i])
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
