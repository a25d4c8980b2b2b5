"""What a session has read and done, and no longer needs whole when a packet is compiled afresh.

The last word on each file that the agent's calls named stays whole, and so does what the last waves brought.
All else is *spent*: a fresh packet shows it in outline, or as a reference where it has none. Whatever else a
packet holds costs its read price in every wave that follows. See ``docs/reference/kernel.md``, epochs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from cockpit.core.named_files import FileNames
from cockpit.orient.fact_columns import NEVER, FactColumns, Flags, Ints
from cockpit.orient.greedy_fill import OUTLINE
from cockpit.orient.select_facts import Selection

SPENDABLE = ("exchange", "file", "symbol", "search", "tree", "log")
"""Sources whose facts can be spent: what the agent asked for and did, and can ask for again."""
WHOLE_WAVES = 2
"""Waves, the current one included, of which every fact stays whole."""
MAX_NAMED = 2_000
"""Facts, the newest, whose files are looked at; older ones are spent."""
_REFERENCE = 2


NameFiles = Callable[[Sequence[str]], Mapping[str, FileNames]]
"""Reads the files that facts name, by fact id."""


def find_spent(columns: FactColumns, ordinal: int, name_files: NameFiles) -> tuple[str, ...]:
    """Return the ids of the facts that are spent in wave ``ordinal``, in order of time.

    What the session began with and what is superseded is not among them.
    """
    spendable = np.array([name in SPENDABLE for name in columns.types], np.bool_)
    open_to = ~columns.superseded & ~columns.repeated
    if len(columns):
        open_to &= spendable[columns.source_type]
    places = np.flatnonzero(open_to & (columns.ordinal > 1)).tolist()
    near, far = places[-MAX_NAMED:], places[:-MAX_NAMED]
    names = name_files([columns.fact_ids[i] for i in near])
    nothing = FileNames(frozenset(), frozenset())
    touched = frozenset[str]().union(*(each.called for each in names.values()))
    later: set[str] = set()
    spent: list[int] = []
    for i in reversed(near):
        about = names.get(columns.fact_ids[i], nothing).all & touched
        if columns.ordinal[i] <= ordinal - WHOLE_WAVES and about <= later:
            spent.append(i)
        later |= about
    return tuple(columns.fact_ids[i] for i in [*far, *reversed(spent)])


def flag_facts(columns: FactColumns, fact_ids: Sequence[str]) -> Flags:
    """Return which facts of ``columns`` have one of these ids."""
    ids = frozenset(fact_ids)
    return np.array([identity in ids for identity in columns.fact_ids], np.bool_)


def condense(columns: FactColumns, spent: Flags) -> tuple[FactColumns, Ints]:
    """Return the facts as they compete when ``spent`` ones have no level but their shortest useful one.

    That is the outline, or the reference of what has none and is not pinned. What is pinned whole stays. The
    array says, for each fact, the level that stands in the place of the full one: 0 where that stays.
    """
    has_outline = columns.outline < NEVER
    to_reference = spent & ~has_outline & ~columns.pinned & (columns.reference < NEVER)
    to_outline = spent & has_outline & (~columns.pinned | columns.short)
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
    )
    return offered, level


def restore_levels(chosen: Selection, columns: FactColumns, level: Ints) -> Selection:
    """Return a selection of condensed facts as one of ``columns``, with the levels that they have there."""
    return replace(chosen, columns=columns, level=np.where(chosen.level == 0, level, chosen.level))
