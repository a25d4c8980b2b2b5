"""What the packet of a wave stands on, beside its facts. See ``docs/reference/kernel.md``, epochs."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from cockpit.store.context import packets
from cockpit.store.context.packet_epoch import CachePrices, Change, SpentFacts
from cockpit.store.context.packets import Packet

if TYPE_CHECKING:
    from cockpit.orient.fact_columns import FactColumns
    from cockpit.orient.spent_facts import ListsSpendable

CountChanges = Callable[[Sequence[tuple[str, str]]], Sequence[Change]]
"""Counts the differences of (fact id, fact id of the one that it replaces); leaves out those without one."""

FindSpent = Callable[["FactColumns | ListsSpendable", int], SpentFacts]
"""Finds, for a wave's facts and its ordinal, those that are spent."""


def _find_nothing(_facts: FactColumns | ListsSpendable, _ordinal: int) -> SpentFacts:
    return SpentFacts()


class Standing(Struct, frozen=True):
    """What a wave's packet stands on, beside its facts."""

    before: Packet | None
    """The packet of the wave before it; None for the first of a session."""
    head: str
    """The digest of the tools as they are described."""
    cold: bool
    """Whether the session was idle for longer than the provider's cache lives."""
    count_changes: CountChanges
    find_spent: FindSpent = _find_nothing
    prices: CachePrices | None = None
    """What the session's model costs with its provider's cache; None: as the profile says."""


def recorded_standing(
    connection: sqlite3.Connection, session_id: str, packet: Packet
) -> Standing | None:
    """Return what a stored packet stood on, as it keeps it; None for one that was compiled by itself."""
    epoch = packet.epoch
    if epoch is None:
        return None
    before = packets.find_before(connection, session_id, packet.ordinal)
    return Standing(
        before.packet if before else None,
        epoch.head,
        epoch.cold,
        lambda _pairs: epoch.changes,
        lambda _columns, _ordinal: epoch.spent,
        epoch.prices,
    )
