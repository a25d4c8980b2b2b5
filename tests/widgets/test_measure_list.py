"""The line of bars: from zero, within its cells, for any numbers."""

from __future__ import annotations

import pytest

from widgets.work.measure_list import bars


@pytest.mark.parametrize(
    ("series", "width", "drawn"),
    [
        ((), 10, ""),
        ((1.0,), 0, ""),
        ((0.0, 0.0), 2, "▁▁"),
        ((1.0, 1.0), 2, "██"),
        ((0.0, 0.5, 1.0), 3, "▁▅█"),
        ((0.7, 0.9), 20, "▆▆▆▆▆▆▆ ███████ "),
        ((1.0, 3.0, 2.0, 2.0), 2, "██"),
        ((0.0, 2.0, 4.0, 4.0), 2, "▃█"),
    ],
)
def test_bars(series: tuple[float, ...], width: int, drawn: str) -> None:
    assert bars(series, width) == drawn


def test_more_numbers_than_cells_stay_within_them() -> None:
    assert len(bars(tuple(float(n) for n in range(1_003)), 40)) == 40
