"""The difference between two packets: facts added, removed and changed.

See ``docs/reference/kernel.md``.
"""

from __future__ import annotations

from msgspec import Struct

from cockpit.store.context.packets import Entry, Packet


class ChangedEntry(Struct, frozen=True):
    """A fact of both packets whose band, level or pin differs."""

    band_before: str
    before: Entry
    band_after: str
    after: Entry


class PacketDiff(Struct, frozen=True):
    """``added`` and ``removed`` are (band, entry), each in the order of the packet they are in."""

    added: tuple[tuple[str, Entry], ...]
    removed: tuple[tuple[str, Entry], ...]
    changed: tuple[ChangedEntry, ...]

    @property
    def same(self) -> bool:
        return not (self.added or self.removed or self.changed)


def diff_packets(before: Packet, after: Packet) -> PacketDiff:
    """Compare two packets fact by fact."""
    old = {entry.fact_id: (band, entry) for band, entry in before.rendered()}
    new = {entry.fact_id: (band, entry) for band, entry in after.rendered()}
    both = [(old[identity], held) for identity, held in new.items() if identity in old]
    return PacketDiff(
        tuple(held for identity, held in new.items() if identity not in old),
        tuple(held for identity, held in old.items() if identity not in new),
        tuple(
            ChangedEntry(band_before, entry_before, band_after, entry_after)
            for (band_before, entry_before), (band_after, entry_after) in both
            if (band_before, entry_before.level, entry_before.pinned)
            != (band_after, entry_after.level, entry_after.pinned)
        ),
    )
