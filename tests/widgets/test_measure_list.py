"""The line of bars: from zero, within its cells, for any numbers."""

from __future__ import annotations

from typing import Any

import pytest

from widgets.work.measure_list import MeasureList, MeasureView, bars


@pytest.mark.parametrize(
    ("series", "width", "drawn"),
    [
        ((), 10, ""),
        ((1.0,), 0, ""),
        ((0.0, 0.0), 2, "▁▁"),
        ((1.0, 1.0), 2, "██"),
        ((0.0, 0.5, 1.0), 3, "▁▅█"),
        ((0.7, 0.9), 20, "▆▆▆▆▆▆▆▆▆ █████████ "),
        ((1.0, 3.0, 2.0, 2.0), 2, "██"),
        ((0.0, 2.0, 4.0, 4.0), 2, "▃█"),
    ],
)
def test_bars(series: tuple[float, ...], width: int, drawn: str) -> None:
    assert bars(series, width) == drawn


def test_more_numbers_than_cells_stay_within_them() -> None:
    assert len(bars(tuple(float(n) for n in range(1_003)), 40)) == 40


@pytest.mark.parametrize("width", [60, 80, 100, 160, 250])
async def test_the_number_of_a_measure_is_never_cut_off(stage: Any, width: int) -> None:
    view = MeasureView("Token limit used per worker", "74%", "below 100%", "5 workers", is_met=True)
    async with stage(MeasureList(), size=(width, 20)) as pilot:
        await pilot.app.query_one(MeasureList).show([view])
        await pilot.pause()
        assert "✔ 74%" in pilot.app.drawn
        assert "aim met: below 100% · 5 workers" in pilot.app.drawn
