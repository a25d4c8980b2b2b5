"""What the prompt of a wave cost with the provider's cache: expected, and as the provider reported it.

See ``docs/reference/kernel.md``, epochs.
"""

from __future__ import annotations

import sqlite3
from typing import Any

from msgspec import Struct

from cockpit.core.text import pluralize
from cockpit.store.context import profiles
from cockpit.store.context.packet_epoch import REASONS, CachePrices, Epoch
from cockpit.store.context.packets import StoredPacket
from cockpit.store.journal.details.waves import PROVIDERS
from cockpit.store.journal.event_types import Action


class PromptCost(Struct, frozen=True):
    """Tokens of one wave's prompt. ``cost_units`` are tokens at the price without a cache."""

    rendered_tokens: int | None
    cached_expected: int | None
    cached_reported: int | None
    """None where no provider counted."""
    cost_units: int | None
    epoch: Epoch | None
    prices: CachePrices | None = None
    """What ``cost_units`` counts by."""

    def body(self) -> dict[str, Any]:
        """Return it as a JSON value."""
        epoch = self.epoch
        return {
            "rendered_tokens": self.rendered_tokens,
            "cached_expected": self.cached_expected,
            "cached_reported": self.cached_reported,
            "cost_units": self.cost_units,
            "epoch": None
            if epoch is None
            else {"first": epoch.first, "reason": epoch.reason, "headroom": epoch.headroom},
            "prices": None if self.prices is None else self.prices.document(),
        }

    @property
    def words(self) -> str:
        """The wave's place in its epoch and its cost, as sentences."""
        epoch = self.epoch
        if epoch is None or self.rendered_tokens is None:
            return "This packet stands alone: it was compiled without epochs."
        if epoch.begins:
            sentences = [f"This wave begins an epoch: {REASONS[epoch.reason]}."]
            if epoch.headroom:
                sentences.append(
                    f"It leaves {pluralize(epoch.headroom, 'token')} free for the waves after it"
                    f" ({epoch.share} % of the room)."
                )
        else:
            sentences = [f"This wave appends to the epoch that wave {epoch.first} began."]
        reported = "" if self.cached_reported is None else f", {self.cached_reported:,} reported"
        sentences.append(
            f"Of {pluralize(self.rendered_tokens, 'token')}, {self.cached_expected:,} are expected in"
            f" the provider's cache{reported}. The prompt costs as much as"
            f" {pluralize(self.cost_units or 0, 'token')} without a cache."
        )
        return " ".join(sentences)


def read_prompt_cost(connection: sqlite3.Connection, stored: StoredPacket) -> PromptCost:
    """Read what the prompt of a stored packet cost."""
    packet = stored.packet
    if packet.epoch is None or packet.rendered_tokens is None:
        return PromptCost(packet.rendered_tokens, None, None, None, packet.epoch)
    reported = _read_reported(connection, stored.wave_id)
    cached = packet.epoch.cached if reported is None else reported
    prices = (
        packet.epoch.prices
        or profiles.load(connection, packet.profile_id, packet.profile_version).cache
    )
    units = prices.units(packet.rendered_tokens, cached)
    return PromptCost(
        packet.rendered_tokens, packet.epoch.cached, reported, units, packet.epoch, prices
    )


def _read_reported(connection: sqlite3.Connection, wave_id: str) -> int | None:
    """Read the cached tokens of the wave's last model call; None where no provider counted."""
    row = connection.execute(
        "SELECT json_extract(detail_json,'$.model'), json_extract(detail_json,'$.input_tokens'),"
        " json_extract(detail_json,'$.cached_tokens') FROM journal WHERE wave_id=? AND action=?"
        " ORDER BY seq DESC LIMIT 1",
        (wave_id, str(Action.MODEL_COMPLETED)),
    ).fetchone()
    if row is None or not row[1] or not row[0].startswith(PROVIDERS):
        return None
    return int(row[2] or 0)
