"""Near-duplicates among a session's facts, found by comparing sketches.

A sketch is sixteen digits of four bits, packed into a signed 64-bit number (0: none). Two facts are
near-duplicates when thirteen digits or more agree, which is about nine lines of ten in common. A
fact joins the cluster of the first near-duplicate before it; that one never changes, because what a
past wave knew never changes. Specified in ``docs/reference/kernel.md``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cockpit.store.db.transaction import Tx

AGREE = 13
"""Digits of sixteen that near-duplicates share."""

_LOW_BITS = 0x1111111111111111
_WHOLE = (1 << 64) - 1
_BANDS = (0, 16, 32, 48)
_CROWD = 8


def are_near_duplicates(sketch: int, other: int) -> bool:
    """Tell whether two sketches belong to near-duplicates."""
    differ = (sketch ^ other) & _WHOLE
    differ |= differ >> 1
    differ |= differ >> 2
    return (differ & _LOW_BITS).bit_count() <= 16 - AGREE


def find_first_duplicates(earlier: Iterable[int], new: Sequence[int]) -> list[int]:
    """Find, for each of the ``new`` sketches, the first near-duplicate before it.

    Searches ``earlier`` and the new ones before it; 0 where there is none. Three digits may differ,
    so one of four groups of four digits agrees completely: looking these up finds every pair,
    except in groups that more than a few unlike texts share.
    """
    tables: tuple[dict[int, list[int]], ...] = ({}, {}, {}, {})
    firsts: set[int] = set()

    def first_of(sketch: int) -> int:
        if sketch in firsts:
            return sketch
        for table, shift in zip(tables, _BANDS, strict=True):
            for other in table.get((sketch >> shift) & 0xFFFF, ()):
                if are_near_duplicates(sketch, other):
                    return other
        firsts.add(sketch)
        for table, shift in zip(tables, _BANDS, strict=True):
            crowd = table.setdefault((sketch >> shift) & 0xFFFF, [])
            if len(crowd) < _CROWD:
                crowd.append(sketch)
        return 0

    for sketch in earlier:
        first_of(sketch)
    return [first_of(sketch) if sketch else 0 for sketch in new]


def assign_clusters(tx: Tx, session_id: str, ordinal: int) -> None:
    """Assign clusters to the facts that are new in a wave, in the order of their places."""
    new = tx.execute(
        "SELECT position, sketch FROM session_facts WHERE session_id=? AND ordinal=?"
        " AND sketch<>0 ORDER BY position",
        (session_id, ordinal),
    ).fetchall()
    if not new:
        return
    earlier = tx.execute(
        "SELECT sketch FROM session_facts WHERE session_id=? AND ordinal<? AND sketch<>0"
        " AND cluster=0 ORDER BY ordinal, position",
        (session_id, ordinal),
    )
    first = find_first_duplicates((sketch for (sketch,) in earlier), [sketch for _, sketch in new])
    tx.connection.executemany(
        "UPDATE session_facts SET cluster=? WHERE session_id=? AND ordinal=? AND position=?",
        [
            (leader, session_id, ordinal, position)
            for (position, sketch), leader in zip(new, first, strict=True)
            if leader not in (0, sketch)
        ],
    )
