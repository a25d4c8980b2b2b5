"""The band meter draws one scale, aligned columns, and opens a band."""

import msgspec
import pytest
from stage import settle

from widgets.bands.band_meter import BandMeter
from widgets.text.numerals import duration, money, span, tokens
from widgets.views import BandView, CacheView, MeterView, WaveUseView

pytestmark = pytest.mark.slow

BANDS = (
    BandView("identity", 4_100, 12_000, 18_000, 25_000),
    BandView("objectives", 17_900, 15_000, 25_000, 40_000),
    BandView("capabilities", 25_000, 10_000, 15_000, 25_000),
    BandView("situational", 55_000, 45_000, 80_000, 110_000, 160, 31),
    BandView("exploration", 6_600, 5_000, 12_000, 25_000),
    BandView("reserve", 0, 3_000, 5_000, 8_000),
)
VIEW = MeterView(BANDS, 113_420, 150_000, "9f31c2e5aa", 212, 31, "profile v7", 3)


def row(rows: list[str], name: str) -> str:
    return next(each for each in rows if each.startswith(name))


async def test_it_says_what_the_providers_cache_has(stage):
    costs = ("$0.0300", "$0.0083")
    cached = MeterView(BANDS, 113_420, 150_000, cache=CacheView(101_200, 2_220, "$0.04"))
    priced = MeterView(BANDS, 1, 9, cache=CacheView(101_200, 2_220, "$0.04", costs))
    fresh = MeterView(BANDS, 113_420, 150_000, cache=CacheView(0, 103_420))
    meter = BandMeter()
    async with stage(meter, size=(90, 14)) as pilot:
        for width, view, told in (
            (90, fresh, "cached 0 · new 103,420"),
            (90, cached, "cached 101,200 · new 2,220 · in all $0.04"),
            (90, priced, "cached 101,200 $0.0300 · new 2,220 $0.0083 · in all $0.04"),
            (60, priced, "cached 101,200 · new 2,220 · in all $0.04"),
            # No amount of money is cut off: it would say another one.
            (40, priced, "cached 101k  new 2.2k  $0.04"),
            (32, priced, "cached 101k  new 2.2k"),
        ):
            meter.show(view)
            await pilot.resize_terminal(width, 14)
            await settle(pilot)
            assert told in [row.strip("│").strip() for row in pilot.app.rows], (width, told)
        meter.show(cached)
        await pilot.resize_terminal(24, 14)
        await settle(pilot)
        assert any(row.strip("│").strip().endswith("…") for row in pilot.app.rows)


async def test_enter_opens_the_band_under_the_cursor(stage):
    meter = BandMeter()
    async with stage(meter) as pilot:
        meter.show(VIEW)
        meter.focus()
        await pilot.press("j", "j", "down", "k", "enter")
        await pilot.press(*["j"] * 20, "enter", *["k"] * 20, "up", "enter")
        names = [each.name for each in pilot.app.got(BandMeter.BandOpened)]
        assert names == ["capabilities", "reserve", "identity"]


def test_numerals():
    numbers = (0, 999, 4_100, 99_949, 99_950, 113_420, 1_200_000)
    assert [tokens(n) for n in numbers] == "0 999 4.1k 99.9k 100k 113k 1.2M".split()  # noqa: SIM905
    assert span(12_000, 25_000) == "12–25k"
    assert span(500, 1_500) == "500–1.5k"
    seconds = (-1, 59, 60, 3_599, 3_600, 90_000)
    assert [duration(s) for s in seconds] == ["0s", "59s", "1m", "59m", "1h", "1d"]
    assert [money(x) for x in (0.0, 0.0042, 0.12, 3.0)] == ["$0.00", "$0.0042", "$0.12", "$3.00"]


HISTORY = tuple(
    WaveUseView(wave, (("identity", 4_000), ("situational", 9_000 * wave)), 9_000 * wave - 9_000,
                9_000 * wave + 4_000, wave == 1, "$0.02")
    for wave in range(1, 31)
)  # fmt: skip


async def test_below_the_bands_are_the_waves_the_legend_and_what_bands_hold(stage):
    costs = tuple(msgspec.structs.replace(each, cost="$0.0012") for each in BANDS)
    view = msgspec.structs.replace(VIEW, bands=costs, history=HISTORY)
    meter = BandMeter()
    async with stage(meter, size=(76, 40)) as pilot:
        meter.show(view)
        meter.styles.height = 40
        await settle(pilot)
        rows = [each.strip("│").rstrip() for each in pilot.app.rows]
        text = "\n".join(rows)
        assert "$0.0012" in row([each.strip() for each in rows], "objectives")
        assert "┃ floor" in text and "new sent for the first time" in text
        assert "the rules: AGENTS.md and yours" in text
        waves = [each for each in rows if "% cached" in each]
        shown = [int(each.split()[0].rstrip("↻")) for each in waves]
        assert shown == list(range(shown[0], 31)) and len(shown) > 10
        assert f"{shown[0] - 1} earlier" in text
        assert all("i" in each and "s " in each and "$0.02" in each for each in waves)
        # A low pane keeps the bands; a few waves come before the legend.
        meter.styles.height = 15
        await settle(pilot)
        text = "\n".join(pilot.app.rows)
        assert "exploration" in text and "% cached" in text and "┃ floor" not in text
        meter.styles.height = 10
        await settle(pilot)
        text = "\n".join(pilot.app.rows)
        assert "reserve" in text and "% cached" not in text
