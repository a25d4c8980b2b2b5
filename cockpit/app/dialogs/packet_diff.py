"""The difference between the packets of two waves: facts that were added, removed or changed.

Specified in ``docs/reference/kernel.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.binding import Binding

from cockpit.app.dialogs.band_facts import FactDialog
from cockpit.core.errors import CockpitError
from widgets.text.clean import clean
from widgets.views import FactView, Fate

if TYPE_CHECKING:
    from cockpit.loop.runtime import Runtime
    from cockpit.loop.views.packet_inspection import Difference
    from cockpit.orient.diff_packets import ChangedEntry
    from cockpit.store.context.packets import Entry


async def read_compiled_waves(engine: Runtime, session_id: str) -> list[int]:
    """Return the numbers of the waves that have a packet. Raises the store's typed errors."""
    from cockpit.loop.views.packet_inspection import compiled_waves

    return await engine.store.read(lambda connection: compiled_waves(connection, session_id))


def diff_rows(difference: Difference) -> list[FactView]:
    """Return one row for each fact that differs, in the order of the packets."""
    change, rows = difference.change, list[FactView]()
    sides: tuple[tuple[Fate, Sequence[tuple[str, Entry]]], ...] = (
        ("added", change.added),
        ("removed", change.removed),
    )
    for fate, entries in sides:
        rows += [
            FactView(
                entry.fact_id,
                fate,
                difference.refs.get(entry.fact_id, entry.fact_id),
                entry.tokens,
                entry.level,
                _why(difference, entry.fact_id, band),
                band=band,
                pinned=entry.pinned,
            )
            for band, entry in entries
        ]
    rows += [
        FactView(
            each.after.fact_id,
            "changed",
            difference.refs.get(each.after.fact_id, each.after.fact_id),
            each.after.tokens,
            each.after.level,
            _why(difference, each.after.fact_id, _was(each)),
            band=each.band_after,
            pinned=each.after.pinned,
        )
        for each in change.changed
    ]
    return rows


def _why(difference: Difference, fact_id: str, change: str) -> str:
    """Return why the later packet has the fact or left it out, and its band."""
    reason = difference.reasons.get(fact_id, "no longer offered")
    return f"{reason.replace('_', ' ')} · {change}"


def _was(each: ChangedEntry) -> str:
    moved = each.band_before != each.band_after
    parts = [f"{each.band_after} from {each.band_before}" if moved else each.band_after]
    if each.before.level != each.after.level:
        parts.append(f"was {each.before.level}")
    if each.before.pinned != each.after.pinned:
        parts.append("now pinned" if each.after.pinned else "unpinned")
    return ", ".join(parts)


class PacketDiffDialog(FactDialog):
    """Two waves' packets compared; left and right move the later wave, shifted the earlier one."""

    FATES = ("added", "removed", "changed")
    KEYS = "← → this wave · ⇧← ⇧→ compared with · ⏎ read · p pin · / filter · esc back"

    BINDINGS = [  # noqa: RUF012 -- Textual's way
        Binding("left,h", "after(-1)", "earlier", show=False),
        Binding("right,l", "after(1)", "later", show=False),
        Binding("shift+left,H", "before(-1)", "earlier", show=False),
        Binding("shift+right,L", "before(1)", "later", show=False),
    ]

    def __init__(self, engine: Runtime, session_id: str, waves: Sequence[int]) -> None:
        super().__init__(engine, session_id, empty="Both packets contain the same facts.")
        self._waves = tuple(waves)
        self._after = len(waves) - 1
        self._before = self._after - 1

    def on_mount(self) -> None:
        self.call_later(self._compare)

    async def action_after(self, step: int) -> None:
        """Move the later wave; the earlier one moves with it."""
        place = max(1, min(self._after + step, len(self._waves) - 1))
        if place != self._after:
            self._after, self._before = place, place - 1
            await self._compare()

    async def action_before(self, step: int) -> None:
        """Move the earlier wave."""
        place = max(0, min(self._before + step, self._after - 1))
        if place != self._before:
            self._before = place
            await self._compare()

    async def _compare(self) -> None:
        before, after = self._waves[self._before], self._waves[self._after]
        try:
            difference = await self.engine.packet_diff(self.session_id, before, after)
        except CockpitError as error:
            self.app.notify(clean(str(error)), severity="error", markup=False)
            return
        self.title = f"Packet of wave {after}, compared with wave {before}"
        self.list.show(diff_rows(difference))
        self.update_head()
