"""Lists that a user picks from: rows stay readable at any width, by keys and by clicks."""

from __future__ import annotations

import pytest
from stage import settle

from widgets.bands.fact_list import FactList
from widgets.forms.pick_list import PickList, mark_current
from widgets.proposals.waiting_rows import WaitingRows
from widgets.views import FactView, QueueView
from widgets.work.measure_list import MeasureList, MeasureView, bars

pytestmark = pytest.mark.slow

FACTS = [
    FactView(
        key=str(place), source_ref=f"file:src/part_{place:05}.py:1-40", fate="removed", level="full",
        tokens=593 + place, utility=None, why="band ceiling · situational", pinned=False,
    )
    for place in range(80)
]  # fmt: skip


async def test_sources_are_told_apart_and_a_click_takes_the_cursor_and_a_second_opens(stage):
    """Reasons that do not fit end with an ellipsis."""
    async with stage(FactList(FACTS), size=(160, 12)) as pilot:
        for width in (160, 60):
            await pilot.resize_terminal(width, 12)
            await settle(pilot)
            rows = [row for row in pilot.app.rows if "file:" in row]
            assert len({row.split("file:")[1].split()[0] for row in rows}) == len(rows) >= 8
            for row in rows:
                assert "band ceiling" in row
                assert "situational" in row or "…" in row
        for number in (5, 0, 3):
            place = next(y for y, row in enumerate(pilot.app.rows) if f"part_{number:05}" in row)
            await pilot.click(offset=(20, place))
            assert pilot.app.query_one(FactList).at_cursor.key == str(number)
        assert not pilot.app.got(FactList.Opened)
        await pilot.click(offset=(20, place), times=2)
        assert [each.key for each in pilot.app.got(FactList.Opened)] == ["3"]


@pytest.mark.parametrize(
    ("series", "width", "drawn"),
    [
        ((1.0,), 0, ""),
        ((0.0, 0.5, 1.0), 3, "▁▅█"),
        ((0.7, 0.9), 20, "▆▆▆▆▆▆▆▆▆ █████████ "),
        ((0.0, 2.0, 4.0, 4.0), 2, "▃█"),
    ],
)
def test_bars(series, width, drawn):
    assert bars(series, width) == drawn


async def test_the_number_of_a_measure_is_never_cut_off(stage):
    view = MeasureView("Token limit used per worker", "74%", "below 100%", "5 workers", is_met=True)
    async with stage(MeasureList(), size=(60, 20)) as pilot:
        await pilot.app.query_one(MeasureList).show([view])
        await settle(pilot)
        assert "✔ 74%" in pilot.app.drawn
        assert "aim met: below 100% · 5 workers" in pilot.app.drawn


ROWS = [
    ("a", "review pr 24", "2 h ago"),
    ("b", "fix login", "yesterday"),
    ("c", "fix logout", "yesterday"),
]


async def test_keys_pick_typing_filters_by_words_in_any_order_and_escape_leaves(stage):
    async with stage(PickList("p", mark_current(ROWS, "b"), first="b")) as pilot:
        (marked,) = [row for row in pilot.app.rows if "now" in row]
        assert "fix login" in marked and "yesterday" in marked
        await pilot.press("down", "up", "enter")
        await pilot.press(*"OUT fix")
        await settle(pilot)
        assert "fix logout" in pilot.app.drawn
        assert "fix login" not in pilot.app.drawn
        await pilot.press("enter")
        assert [each.key for each in pilot.app.got(PickList.Picked)] == ["b", "c"]
    async with stage(PickList("p", [], empty="No sessions yet.")) as pilot:
        assert "No sessions yet." in pilot.app.drawn
        await pilot.press("enter", "escape")
        assert len(pilot.app.got(PickList.Dismissed)) == 1
        assert not pilot.app.got(PickList.Picked)


async def test_waiting_rows_that_are_gone_can_still_be_drawn(stage):
    """Below a dialog, a frame may come before they are laid out anew."""
    rows = WaitingRows()
    async with stage(rows):
        rows.show(QueueView(), 1)
        assert rows.render().plain == ""
