"""The measures on the screen: live, for a period that keys choose, and before and after a date."""

from __future__ import annotations

import pytest
from app_world import screen_of, settled, until
from chains.measures.chain_days import Days, three_days

from cockpit.app.application import CockpitApp
from cockpit.app.screens.stats_screen import StatsScreen

pytestmark = pytest.mark.slow

WIDE = (150, 42)
SMALL = (80, 24)


@pytest.fixture
def days(still, clock) -> Days:
    return three_days(still.store, clock)


async def opened(pilot) -> StatsScreen:
    """The screen of measures, opened from the palette's list, when it has read."""
    await settled(pilot)
    screen_of(pilot).act("stats")
    await until(pilot, lambda: isinstance(pilot.app.screen, StatsScreen))
    await settled(pilot)
    await until(pilot, lambda: len(pilot.app.screen.body.views) == 16)
    return pilot.app.screen


def shown(screen: StatsScreen) -> dict[str, str]:
    return {view.name: view.value for view in screen.body.views}


async def test_it_is_live(still, days):
    app = CockpitApp(still)
    async with app.run_test(size=WIDE) as pilot:
        screen = await opened(pilot)
        assert shown(screen)["Batches completed"] == "75%"
        chain = days.chain()
        days.session(chain, 1, [("failed", 0, 0), ("failed", 0, 0)], tokens=1_000)
        await until(pilot, lambda: shown(screen)["Batches completed"] == "60%")
        await pilot.press("escape")
        await until(pilot, lambda: len(app.screen_stack) == 1)


async def test_keys_choose_the_time(still, days):
    app = CockpitApp(still)
    async with app.run_test(size=WIDE) as pilot:
        screen = await opened(pilot)
        assert shown(screen)["Workers per chain"] == "2.5"
        await pilot.press("right", "right", "right", "right")
        await until(pilot, lambda: shown(screen)["Tasks per worker"] == "7.5")
        assert screen.head()[1][0][0] == "the last day"
        await pilot.press("left")
        await until(pilot, lambda: shown(screen)["Tasks per worker"] == "4.0")


async def test_before_and_after_a_date(still, days):
    app = CockpitApp(still)
    async with app.run_test(size=WIDE) as pilot:
        screen = await opened(pilot)
        await pilot.press("p")
        await until(pilot, lambda: app.screen is not screen)
        await pilot.press(*"2026-01-02", "enter")
        await until(pilot, lambda: shown(screen)["Batches completed"] == "100%")
        changes = {view.name: (view.change, view.tone) for view in screen.body.views}
        assert changes["Batches completed"] == ("before 50%, +50 points", "good")
        await pilot.press("p")
        await until(pilot, lambda: app.screen is not screen)
        await pilot.press(*["backspace"] * 10, *"soon", "enter")
        await until(pilot, lambda: len(app._notifications) == 1)
        assert shown(screen)["Batches completed"] == "100%"


@pytest.mark.parametrize("size", [(20, 6), (40, 12), (300, 80)])
async def test_it_fits_any_size(still, days, size):
    app = CockpitApp(still)
    async with app.run_test(size=size) as pilot:
        screen = await opened(pilot)
        assert len(screen.body.views) == 16


@pytest.mark.parametrize("size", [WIDE, SMALL], ids=["wide", "small"])
def test_measures(still, days, snap_compare, size):
    async def before(pilot):
        await opened(pilot)
        await settled(pilot)

    assert snap_compare(CockpitApp(still), terminal_size=size, run_before=before)


def test_measures_compared(still, days, snap_compare):
    async def before(pilot):
        screen = await opened(pilot)
        await pilot.press("p")
        await until(pilot, lambda: pilot.app.screen is not screen)
        await pilot.press(*"2026-01-02", "enter")
        await until(pilot, lambda: shown(screen)["Batches completed"] == "100%")
        await settled(pilot)

    assert snap_compare(CockpitApp(still), terminal_size=WIDE, run_before=before)


def test_measures_of_nothing(still, snap_compare):
    async def before(pilot):
        await opened(pilot)
        await settled(pilot)

    assert snap_compare(CockpitApp(still), terminal_size=SMALL, run_before=before)
