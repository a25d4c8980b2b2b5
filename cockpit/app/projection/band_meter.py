"""The band meter folded from the journal: the newest packet of each session."""

from __future__ import annotations

import msgspec

from cockpit.store.journal.details.waves import (
    PROVIDERS,
    EpochUse,
    ModelCompleted,
    PacketCompiled,
    WaveStarted,
)
from cockpit.store.journal.journal import Row
from widgets.text.numerals import money
from widgets.views import BandView, CacheView, MeterView


def meter(row: Row, waves_left: int | None = None) -> MeterView:
    """Return the view of one ``orientation.packet.compiled`` row.

    ``waves_left`` more waves may start under the temporary profile change that the packet was compiled
    under; None without one.
    """
    packet = row.read(PacketCompiled)
    profile = f"profile v{row.profile_version}" if row.profile_version is not None else ""
    return MeterView(
        bands=tuple(
            BandView(
                name=band.band,
                used=band.used,
                floor=band.min,
                target=band.target,
                ceiling=band.max,
                facts=band.facts,
                dropped=band.dropped,
            )
            for band in packet.bands
        ),
        token_used=packet.token_used,
        token_budget=packet.token_budget,
        digest=packet.digest,
        facts=packet.facts,
        dropped=packet.dropped,
        profile=profile,
        waves_left=waves_left,
        cache=_expected_cache(packet),
    )


def _expected_cache(packet: PacketCompiled) -> CacheView | None:
    epoch = packet.epoch
    if not isinstance(epoch, EpochUse):
        return None
    new = epoch.rendered_tokens - epoch.cached_expected
    return CacheView(epoch.cached_expected, new, epoch.stale)


def with_reported_cache(view: MeterView, row: Row) -> MeterView:
    """Return the view with what the provider of a ``model.completed`` row reported of its cache."""
    usage = row.read(ModelCompleted)
    if view.cache is None or not usage.input_tokens or not usage.model.startswith(PROVIDERS):
        return view
    cached = usage.cached_tokens
    cost = money(usage.cost_usd) if usage.cost_usd is not None else ""
    new, stale = usage.input_tokens - cached, view.cache.stale
    cache = CacheView(cached, new, stale, cost, _costs(usage, stale))
    return msgspec.structs.replace(view, cache=cache)


def _costs(usage: ModelCompleted, stale: int) -> tuple[str, str, str]:
    """Return what the cached, new and stale tokens cost: stale ones are those that were cached first."""
    if not isinstance(usage.input_usd, float) or not isinstance(usage.cached_usd, float):
        return ("", "", "")
    cached, new = usage.cached_tokens, usage.input_tokens - usage.cached_tokens
    of_cached, of_new = usage.cached_usd, usage.input_usd - usage.cached_usd
    carried = min(stale, cached)
    of_stale = of_cached * carried / max(cached, 1) + of_new * min(stale - carried, new) / max(
        new, 1
    )
    return money(of_cached), money(of_new), money(of_stale)


def waves_left(row: Row) -> int | None:
    """Return how many more waves the profile change of a ``wave.started`` row applies to, or None."""
    left = row.read(WaveStarted).waves_left
    return left if isinstance(left, int) else None
