"""The columns of facts: what tells the rows apart stays readable on narrow screens."""

from __future__ import annotations

from typing import Any

import pytest

from widgets.bands.fact_list import FactList
from widgets.views import FactView

ROWS = [
    FactView(
        key=str(place), source_ref=f"file:src/part_{place:05}.py:1-40", fate="removed", level="full",
        tokens=593 + place, utility=None, why="band ceiling · situational", pinned=False,
    )
    for place in range(80)
]  # fmt: skip


@pytest.mark.parametrize("width", [60, 80, 100, 160, 250])
async def test_sources_are_told_apart_and_reasons_end_with_an_ellipsis(
    stage: Any, width: int
) -> None:
    async with stage(FactList(ROWS), size=(width, 12)) as pilot:
        await pilot.pause()
        rows = [row for row in pilot.app.rows if "file:" in row]
        assert len({row.split("file:")[1].split()[0] for row in rows}) == len(rows) >= 8
        for row in rows:
            assert "band ceiling" in row
            assert "situational" in row or "…" in row


async def test_a_click_takes_the_cursor_and_a_second_opens(stage: Any) -> None:
    async with stage(FactList(ROWS), size=(100, 12)) as pilot:
        await pilot.pause()
        for number in (5, 0, 3):
            place = next(y for y, row in enumerate(pilot.app.rows) if f"part_{number:05}" in row)
            await pilot.click(offset=(20, place))
            assert pilot.app.query_one(FactList).at_cursor.key == str(number)
        assert not pilot.app.got(FactList.Opened)
        await pilot.click(offset=(20, place), times=2)
        assert [each.key for each in pilot.app.got(FactList.Opened)] == ["3"]
