"""The band meter folded from the journal: the newest packet of each session, and those before it."""

from __future__ import annotations

from collections.abc import Mapping

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
from widgets.views import BandView, CacheView, MeterView, WaveUseView

MOST_WAVES = 300
"""Waves whose packets are kept for the history."""
_ANSWER = "reserve"
"""The band that the answer is paid from."""


def meter(
    row: Row, waves_left: int | None = None, history: tuple[WaveUseView, ...] = ()
) -> MeterView:
    """Return the view of one ``orientation.packet.compiled`` row.

    ``waves_left`` more waves may start under the temporary profile change that the packet was compiled
    under; None without one. ``history`` are the packets before it.
    """
    packet = row.read(PacketCompiled)
    profile = f"profile v{row.profile_version}" if row.profile_version is not None else ""
    cache = _expected_cache(packet)
    use = WaveUseView(
        wave=packet.ordinal,
        used=tuple((band.band, band.used) for band in packet.bands),
        cached=cache.cached if cache is not None else 0,
        prompt=cache.cached + cache.new if cache is not None else 0,
        is_fresh=isinstance(packet.epoch, EpochUse) and packet.epoch.first == packet.ordinal,
    )
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
        token_sent=packet.sent,
        token_budget=packet.token_budget,
        digest=packet.digest,
        facts=packet.facts,
        dropped=packet.dropped,
        profile=profile,
        waves_left=waves_left,
        cache=cache,
        history=(*history[1 - MOST_WAVES :], use),
    )


def _expected_cache(packet: PacketCompiled) -> CacheView | None:
    epoch = packet.epoch
    if not isinstance(epoch, EpochUse):
        return None
    new = epoch.rendered_tokens - epoch.cached_expected
    return CacheView(epoch.cached_expected, new)


def with_reported_cache(view: MeterView, row: Row) -> MeterView:
    """Return the view with what the provider of a ``model.completed`` row reported of its cache."""
    usage = row.read(ModelCompleted)
    if view.cache is None or not usage.input_tokens or not usage.model.startswith(PROVIDERS):
        return view
    cached = usage.cached_tokens
    cost = money(usage.cost_usd) if usage.cost_usd is not None else ""
    cache = CacheView(cached, usage.input_tokens - cached, cost, _costs(usage))
    history = tuple(
        msgspec.structs.replace(use, cached=cached, prompt=usage.input_tokens, cost=cost)
        for use in view.history[-1:]
    )
    of_bands = _costs_of_bands(view.history, usage)
    bands = tuple(
        msgspec.structs.replace(band, cost=_share(band.name, of_bands)) for band in view.bands
    )
    history = (*view.history[:-1], *history)
    return msgspec.structs.replace(view, cache=cache, bands=bands, history=history)


def _share(name: str, of_bands: Mapping[str, float]) -> str:
    """Return what a band cost; the price of the answer is known, all other shares are estimated."""
    if not of_bands:
        return ""
    sign = "" if name == _ANSWER else "≈"
    return f"{sign}{money(of_bands.get(name, 0.0))}"


def _costs(usage: ModelCompleted) -> tuple[str, str]:
    """Return what the cached and the new tokens cost."""
    if not isinstance(usage.input_usd, float) or not isinstance(usage.cached_usd, float):
        return ("", "")
    return money(usage.cached_usd), money(usage.input_usd - usage.cached_usd)


def _costs_of_bands(history: tuple[WaveUseView, ...], usage: ModelCompleted) -> Mapping[str, float]:
    """Share what a call cost among the bands of its packet, the last of ``history``; empty without a price.

    Within an epoch a packet appends, so that a band's tokens of the wave before are those that the provider
    had; the answer is paid from the reserve.
    """
    if not isinstance(usage.input_usd, float) or not isinstance(usage.cached_usd, float):
        return {}
    if not history:
        return {}
    now = history[-1]
    appends = len(history) > 1 and not now.is_fresh and usage.cached_tokens > 0
    before = dict(history[-2].used) if appends else {}
    used = {band: tokens for band, tokens in now.used if band != _ANSWER}
    old = {band: min(tokens, before.get(band, 0)) for band, tokens in used.items()}
    fresh = {band: tokens - old[band] for band, tokens in used.items()}
    if not sum(old.values()):
        old = used  # a prompt that another session, or an earlier one, left in the cache
    if not sum(fresh.values()):
        fresh = used
    of_new = usage.input_usd - usage.cached_usd
    costs = {
        band: usage.cached_usd * old[band] / max(sum(old.values()), 1)
        + of_new * fresh[band] / max(sum(fresh.values()), 1)
        for band in used
    }
    answer = (usage.cost_usd or 0.0) - usage.input_usd
    return {**costs, _ANSWER: max(answer, 0.0)}


def waves_left(row: Row) -> int | None:
    """Return how many more waves the profile change of a ``wave.started`` row applies to, or None."""
    left = row.read(WaveStarted).waves_left
    return left if isinstance(left, int) else None
