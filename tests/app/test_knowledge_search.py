"""Searching knowledge on the screen: results with lines, and Enter adds one to the next packet."""

from __future__ import annotations

import pytest
from app_world import screen_of, settled, until

from cockpit.app.application import CockpitApp
from cockpit.app.dialogs.question import Ask, PickOne

pytestmark = pytest.mark.slow


GUIDE = """\
# Rounding

## Money

Amounts are rounded half to even.

## Weights

Weights are rounded up to whole grams.
"""


def test_picture_of_passages(still, project, snap_compare) -> None:
    (project / "rounding.md").write_text(GUIDE)

    async def before(pilot) -> None:
        await settled(pilot)
        screen_of(pilot).act("knowledge")
        await until(pilot, lambda: isinstance(pilot.app.screen, Ask))
        await pilot.press(*"rounded", "enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, PickOne))
        await pilot.pause()

    assert snap_compare(CockpitApp(still), terminal_size=(100, 30), run_before=before)


async def test_enter_adds_a_passage_to_a_session_alone(still, project) -> None:
    (project / "rounding.md").write_text(GUIDE)
    app = CockpitApp(still)
    async with app.run_test(size=(100, 30)) as pilot:
        await settled(pilot)
        screen_of(pilot).act("knowledge")
        await until(pilot, lambda: isinstance(app.screen, Ask))
        await pilot.press(*"grams", "enter")
        await until(pilot, lambda: isinstance(app.screen, PickOne))
        await pilot.press("enter")
        await until(
            pilot, lambda: "start one first" in str([n.message for n in app._notifications])
        )
